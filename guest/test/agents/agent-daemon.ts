// A guest daemon with agent sessions of the scripted agent, called over HTTP. For tests.
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { randomBytes } from 'node:crypto';
import type { ResponseOf } from '@berth/protocol/calls/define.ts';
import type * as calls from '@berth/protocol/calls/agents.ts';
import type { GuestAgentView, GuestTurn } from '@berth/protocol/agents.ts';
import { nullIf } from '@berth/os/errors.ts';
import { killProcess, type ProcessIdentity } from '@berth/os/process-identity.ts';
import { bundleBridge } from '../../src/bundle.ts';
import { startDaemon, until, type TestDaemon } from '../daemon.ts';

const letters = (): string =>
  Array.from(randomBytes(24), (byte) => 'abcdefghijklmnopqrstuvwxyz234567'.charAt(byte & 31)).join('');

export const newTurn = (): string => `trn_${letters()}`;
export const newSessionId = (): string => `ags_${letters()}`;
const programs = new Map<number, Awaited<ReturnType<typeof bundleBridge>>>();

/** A refusal of a call. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(`${status} ${code}: ${message}`);
    this.status = status;
    this.code = code;
  }
}

export class AgentDaemon {
  readonly daemon: TestDaemon;

  private constructor(daemon: TestDaemon) {
    this.daemon = daemon;
  }

  static async start(
    t: TestContext,
    env: Record<string, string> = {},
    nodeFlags: readonly string[] = [],
  ): Promise<AgentDaemon> {
    const started: AgentDaemon[] = [];
    // Before the hook that removes the folder, which names the bridges.
    t.after(() => Promise.all(started.map((one) => one.endBridges())));
    const agents = new AgentDaemon(await startDaemon(t, env, nodeFlags));
    started.push(agents);
    return agents;
  }

  async call<R>(method: string, path: string, body?: unknown): Promise<R> {
    const { status, text } = await this.daemon.call(method, path, body);
    const parsed = JSON.parse(text) as { error?: { code: string; message: string } };
    if (status !== 200) throw new Refusal(status, parsed.error?.code ?? '', parsed.error?.message ?? '');

    return parsed as R;
  }

  async put(version = 7): Promise<string> {
    const program = programs.get(version) ?? (await bundleBridge(version));
    programs.set(version, program);
    const path = `/agents/bridges/${program.sha256}`;
    const answer = await this.daemon.open('PUT', path, Buffer.from(program.code)).answer;
    assert.equal(answer.status, 200, answer.text);
    return program.sha256;
  }

  /** Starts a session as the host does; sends the bridge only if it is missing. */
  async start(
    id: string,
    { mode = 'create', approvals = 'ask', version = 7, scripted = true, variables, surface }: Partial<Start> = {},
  ): Promise<ResponseOf<typeof calls.guestStartAgent>> {
    const program = programs.get(version) ?? (await bundleBridge(version));
    programs.set(version, program);
    const staged = { ...(variables === undefined ? {} : { variables }), ...(surface === undefined ? {} : { surface }) };
    const body = { agent: 'agent_one', mode, approvals, gatewayUrl: null, bridge: program.sha256, scripted, ...staged };
    try {
      return await this.call('POST', `/agents/${id}/start`, body);
    } catch (error) {
      if (!(error instanceof Refusal && error.code === 'agent_bridge_missing')) throw error;

      await this.put(version);
      return this.call('POST', `/agents/${id}/start`, body);
    }
  }

  async session(options: Partial<Start> = {}): Promise<TestSession> {
    const session = new TestSession(this, newSessionId());
    const started = await this.start(session.id, options);
    assert.equal(started.outcome, 'ready', JSON.stringify(started));
    return session;
  }

  endBridges(): Promise<void> {
    return endBridges(this.daemon.folder);
  }
}

/** Ends the bridges that outlive the daemon of a folder, and their agents. */
export async function endBridges(daemonFolder: string): Promise<void> {
  const folder = join(daemonFolder, 'run', 'agents');
  for (const name of await readdir(folder).catch(() => [])) {
    if (!name.endsWith('.json')) continue;
    // The daemon removes the record of a bridge that has exited.
    const record = await readFile(join(folder, name), 'utf8').catch(nullIf('ENOENT'));
    if (record === null) continue;
    const bridge = JSON.parse(record) as ProcessIdentity;
    const { agent } = await ownersIn(join(daemonFolder, 'state', 'agent-sessions', name.replace('.sock.json', '')));
    await killProcess(bridge, 'SIGKILL');
    if (agent !== null) await killProcess(agent, 'SIGKILL');
  }
}

interface Owners {
  bridge: ProcessIdentity;
  agent: ProcessIdentity | null;
}

async function ownersIn(sessionFolder: string): Promise<Owners> {
  const text = await readFile(join(sessionFolder, 'owner.json'), 'utf8').catch(() => '');
  return text === '' ? { bridge: { pid: 0, startTicks: '', bootId: '' }, agent: null } : JSON.parse(text);
}

interface Start {
  mode: 'create' | 'recover';
  approvals: 'ask' | 'never';
  version: number;
  scripted: boolean;
  surface: 'terminal';
  /** Id of staged variables. */
  variables: string;
}

export class TestSession {
  readonly agents: AgentDaemon;
  readonly id: string;

  constructor(agents: AgentDaemon, id: string) {
    this.agents = agents;
    this.id = id;
  }

  get path(): string {
    return `/agents/${this.id}`;
  }

  get folder(): string {
    return join(this.agents.daemon.folder, 'state', 'agent-sessions', this.id);
  }

  async send(text: string, turnId = newTurn(), keyed = true): Promise<ResponseOf<typeof calls.sendAgentMessage>> {
    const { runId } = await this.view();
    return await this.sendToRun(runId, text, turnId, keyed);
  }

  sendToRun(
    runId: string,
    text: string,
    turnId = newTurn(),
    keyed = true,
  ): Promise<ResponseOf<typeof calls.sendAgentMessage>> {
    return this.agents.call('POST', `${this.path}/messages`, { turnId, runId, text, keyed, author: 'user' });
  }

  get(query = ''): Promise<ResponseOf<typeof calls.getAgent>> {
    return this.agents.call('GET', `${this.path}${query}`);
  }

  async view(): Promise<GuestAgentView> {
    return (await this.get()).session;
  }

  turn(turnId: string): Promise<ResponseOf<typeof calls.getAgentTurn>> {
    return this.agents.call('GET', `${this.path}/turns/${turnId}`);
  }

  void(turnId: string): Promise<ResponseOf<typeof calls.voidAgentTurn>> {
    return this.agents.call('POST', `${this.path}/turns/${turnId}/void`);
  }

  answer(requestId: unknown, decision: string): Promise<ResponseOf<typeof calls.answerAgent>> {
    return this.agents.call('POST', `${this.path}/answer`, { requestId, decision });
  }

  interrupt(): Promise<ResponseOf<typeof calls.interruptAgent>> {
    return this.agents.call('POST', `${this.path}/interrupt`);
  }

  output(after = 0, limit = 100, more = ''): Promise<ResponseOf<typeof calls.readAgentOutput>> {
    return this.agents.call('GET', `${this.path}/output?after=${after}&limit=${limit}${more}`);
  }

  async texts(after = 0): Promise<string[]> {
    return (await this.output(after)).replies.map(({ text }) => text);
  }

  turns(after = 0): Promise<ResponseOf<typeof calls.readAgentTurns>> {
    return this.agents.call('GET', `${this.path}/turns?after=${after}&limit=100`);
  }

  recover(version = 7): ReturnType<AgentDaemon['start']> {
    return this.agents.start(this.id, { mode: 'recover', version });
  }

  /** Waits until the turn has this state. */
  async reaches(turnId: string, ...states: GuestTurn['state'][]): Promise<GuestTurn> {
    let turn: GuestTurn | null = null;
    await until(`${turnId} is ${states.join(' or ')}`, async () => {
      ({ turn } = await this.turn(turnId));
      return turn !== null && states.includes(turn.state);
    });
    return turn as unknown as GuestTurn;
  }

  /** Sends a message and waits for the end of its turn. */
  async run(text: string): Promise<GuestTurn> {
    const { turn } = await this.send(text);
    return this.reaches(turn.turnId, 'completed', 'failed', 'canceled');
  }

  async stopped(): Promise<GuestAgentView> {
    await until('the bridge is stopped', async () => (await this.view()).bridge === 'stopped');
    return this.view();
  }

  owners(): Promise<Owners> {
    return ownersIn(this.folder);
  }

  async kill(whom: 'bridge' | 'agent'): Promise<void> {
    const owner = (await this.owners())[whom];
    assert.ok(owner !== null && (await killProcess(owner, 'SIGKILL')));
  }

  /** Turn ids in the order of their execution. */
  async effects(): Promise<string[]> {
    const text = await readFile(join(this.agents.daemon.codeFolder, 'agent-effects'), 'utf8').catch(() => '');
    return text.split('\n').filter(Boolean);
  }
}
