// A session of the suite: sends scripts, and compares responses with the literals of the contract.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { until } from '../../../os/test/until.ts';
import type { AgentSession, AgentTurn } from '@berth/contract/agents/sessions.ts';
import { call, exec, type Answer, type Caller } from '../../world/client.ts';
import { Conversation } from '../conversation.ts';
import { stateOf } from '../faults.ts';
import type { SuiteAgent } from './agents.ts';
import type { AgentWorld } from './world.ts';

type Script = readonly string[];

export class SessionCheck {
  readonly world: AgentWorld;
  readonly agent: SuiteAgent;
  readonly talk: Conversation;
  /** In the text of every message: finds its calls of the model. */
  readonly mark = `mark-${randomBytes(8).toString('hex')}`;

  private constructor(world: AgentWorld, agent: SuiteAgent, talk: Conversation) {
    this.world = world;
    this.agent = agent;
    this.talk = talk;
  }

  static async start(world: AgentWorld, agent: SuiteAgent, sandboxId: string): Promise<SessionCheck> {
    return new SessionCheck(world, agent, await Conversation.create(world.caller, sandboxId));
  }

  async call(method: 'GET' | 'POST', rest: string, body?: unknown, caller: Caller = this.talk.caller): Promise<Answer> {
    return await call(caller, method, `/v1/agent-sessions/${this.talk.id}${rest}`, body);
  }

  /** Text of a message. `name` tells messages of a session apart. */
  textOf(name: string, script: Script): string {
    return [...(this.agent.real === null ? [] : [`${this.mark}-${name}`]), ...script].join('\n');
  }

  send(name: string, script: Script, requestKey?: string, caller?: Caller): Promise<Answer> {
    const body = { text: this.textOf(name, script), ...(requestKey === undefined ? {} : { requestKey }) };
    return this.call('POST', '/messages', body, caller);
  }

  /** Sends a message that must be taken; returns its turn. */
  async turn(name: string, script: Script, requestKey?: string): Promise<string> {
    const { status, body } = await this.send(name, script, requestKey);
    const { turnId, ...rest } = body as { turnId: string };
    assert.match(turnId, /^trn_/, JSON.stringify(body));
    assert.deepEqual([status, rest], [202, { state: 'running' }]);
    return turnId;
  }

  /** Sends a message and waits for its end. */
  async run(name: string, script: Script, state: AgentTurn['state'] = 'completed'): Promise<string> {
    const turnId = await this.turn(name, script);
    await this.ends(turnId, state);
    return turnId;
  }

  async ends(turnId: string, state: AgentTurn['state'], reason: AgentTurn['reason'] = null): Promise<void> {
    const turn = await this.talk.ended(turnId);
    assert.deepEqual([turn.state, turn.reason], [state, reason]);
  }

  /** `tools`: number of tool calls whose result the model got, or the possible ones. */
  async assertRuns(turnId: string, name: string, tools: number | readonly number[] = 0): Promise<void> {
    const runs = await this.agent.executions(turnId, `${this.mark}-${name}`, this);
    const expected = [tools].flat().map((count) => this.agent.expected(count));
    assert.ok(expected.includes(runs), `${runs} executions of ${name}, not ${expected.join(' or ')}`);
  }

  /** Waits until the turn is at work in the agent. */
  async works(turnId: string, name: string): Promise<void> {
    await until(`${name} is at work`, async () => {
      return (await this.agent.executions(turnId, `${this.mark}-${name}`, this)) > 0 ? true : null;
    });
  }

  /** Waits for an approval; returns its id. */
  async asked(): Promise<number> {
    const session = await this.talk.until('an approval is pending', ({ needsYou }) => needsYou);
    assert.deepEqual([session.turnState, session.waitingOn], ['waiting', 'approval']);
    const { requestId, kind, turnId, decisions } = session.pendingInput as NonNullable<AgentSession['pendingInput']>;
    assert.deepEqual([kind, turnId, decisions], ['command', session.turnId, ['accept', 'decline', 'cancel']]);
    assert.equal(typeof requestId, 'number');
    return requestId as number;
  }

  answer(requestId: unknown, decision: string): Promise<Answer> {
    return this.call('POST', '/answer', { requestId, decision });
  }

  async interrupt(turnId: string): Promise<void> {
    const { status, body } = await this.call('POST', '/interrupt');
    const { state, ...rest } = body as { state: string };
    assert.deepEqual([status, rest], [200, { turnId }]);
    // The turn may have ended before the response.
    assert.ok(state === 'interrupting' || state === 'canceled', state);
    await this.ends(turnId, 'canceled');
  }

  /** Texts of the replies after the cursor. */
  async texts(after?: string): Promise<string[]> {
    const { status, body } = await this.call('GET', `/output${after === undefined ? '' : `?after=${after}`}`);
    assert.equal(status, 200, JSON.stringify(body));
    return (body as { messages: { text: string }[] }).messages.map(({ text }) => text);
  }

  async exists(path: string): Promise<boolean> {
    return (await exec(this.talk.caller, this.talk.sandboxId, `[ -e ${path} ]`)).exitCode === 0;
  }

  /** Path of a file that only this session uses. */
  file(name: string): string {
    return `/tmp/${this.mark}-${name}`;
  }

  /**
   * Records a living process in the place of the agent's, as if that had survived its bridge;
   * returns how to end it.
   */
  async recordLiving(owners: string): Promise<() => Promise<string>> {
    const { bridge } = JSON.parse(owners) as { bridge: { bootId: string } };
    const pid = (await this.talk.run('sleep 600 >/dev/null 2>&1 & echo $!')).trim();
    const startTicks = (await this.talk.run(`cut -d ' ' -f 22 /proc/${pid}/stat`)).trim();
    const agent = { ...bridge, pid: Number(pid), startTicks };
    await stateOf(this.talk, 'owner.json', JSON.stringify({ bridge, agent }));
    return () => this.talk.run(`kill ${pid}`);
  }

  async stopped(reason: AgentSession['bridgeReason']): Promise<void> {
    const session = await this.talk.until('the bridge is stopped', ({ bridgeState }) => bridgeState === 'stopped');
    assert.equal(session.bridgeReason, reason);
    assert.deepEqual(session.communication, { status: 'stopped', capabilities: ['output', 'recovery'] });
  }
}

/** The response is the error with this status and code; returns it. */
export function assertRefused({ status, body }: Answer, expected: number, code: string): { message: string } & Refusal {
  const { error } = body as { error?: Refusal & { message: string; code: string } };
  assert.deepEqual([status, error?.code], [expected, code], JSON.stringify(body));
  return error as Refusal & { message: string };
}

interface Refusal {
  turnId?: string;
}
