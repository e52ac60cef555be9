// Conformance: agent sessions in a guest, with the scripted agent. Turns run once, survive
// sleep and wake, and fail at a boot of the disk.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, it } from 'node:test';
import { AGENT_SEQ_GAP, BRIDGE_VERSION } from '@berth/protocol/agent-errors.ts';
import type { GuestAgentView, GuestTurn } from '@berth/protocol/agents.ts';
import {
  answerAgent,
  getAgent,
  getAgentTurn,
  interruptAgent,
  listAgents,
  readAgentOutput,
  sendAgentMessage,
  startAgent as startCall,
  voidAgentTurn,
  type AgentStarted,
} from '@berth/protocol/calls/agents.ts';
import { openTerminal } from '@berth/protocol/calls/connections.ts';
import { stageVariables } from '@berth/protocol/calls/variables.ts';
import { bytesFrames, FrameReader, TERMINAL_FRAME } from '@berth/protocol/terminal-frames.ts';
import { AgentBridge } from '../../guest/agent-bridge.ts';
import { startAgent } from '../lifecycle/agents.ts';
import { outputOf, type ConformanceOptions, type Subject, type SubjectVm } from './subject.ts';

const POLL_MS = 20;
/** Emulated guests are slow. */
const STATE_DEADLINE_MS = 120_000;
const bridge = new AgentBridge({ scripted: true, bridgeVersion: BRIDGE_VERSION });

const letters = (): string =>
  Array.from(randomBytes(24), (byte) => 'abcdefghijklmnopqrstuvwxyz234567'.charAt(byte & 31)).join('');

/** A session, called as by the API. */
class AgentSubject {
  readonly params = { sessionId: `ags_${letters()}` };
  readonly #vm: SubjectVm;

  constructor(vm: SubjectVm) {
    this.#vm = vm;
  }

  async start(
    mode: 'create' | 'recover' = 'create',
    more: { variables?: string; surface?: 'terminal' } = {},
  ): Promise<AgentStarted> {
    const { client } = this.#vm;
    const order = { ...this.params, agent: 'agent_one', mode, approvals: 'ask', gateway: false, ...more } as const;
    const stream = await startAgent(
      bridge,
      { guest: client, models: null },
      order,
      AbortSignal.timeout(STATE_DEADLINE_MS),
    );
    return startCall.response.parse(JSON.parse(await text(stream)));
  }

  async send(message: string, turnId = `trn_${letters()}`): Promise<GuestTurn> {
    const { runId } = await this.view();
    const body = { turnId, runId, text: message, keyed: true, author: 'user' };
    return (await this.#vm.client.call(sendAgentMessage, { params: this.params, body })).turn;
  }

  async view(): Promise<GuestAgentView> {
    return (await this.#vm.client.call(getAgent, { params: this.params, query: {} })).session;
  }

  async reaches(turnId: string, state: GuestTurn['state']): Promise<GuestTurn> {
    const deadline = performance.now() + STATE_DEADLINE_MS;
    for (;;) {
      const { turn } = await this.#vm.client.call(getAgentTurn, { params: { ...this.params, turnId } });
      if (turn?.state === state) return turn;

      assert.ok(performance.now() < deadline, `the turn is ${turn?.state}, not ${state}`);
      await delay(POLL_MS);
    }
  }

  async replies(after = 0): Promise<[number, string][]> {
    const query = { after, limit: 100 };
    const { replies } = await this.#vm.client.call(readAgentOutput, { params: this.params, query });
    return replies.map((reply) => [reply.seq, reply.text]);
  }

  async answer(requestId: number | string, decision: 'accept' | 'decline' | 'cancel'): Promise<void> {
    await this.#vm.client.call(answerAgent, { params: this.params, body: { requestId, decision } });
  }

  async interrupt(): Promise<void> {
    await this.#vm.client.call(interruptAgent, { params: this.params });
  }

  async void(turnId: string): Promise<GuestTurn> {
    return (await this.#vm.client.call(voidAgentTurn, { params: { ...this.params, turnId } })).turn;
  }

  /** Connects to the program of a terminal, and returns its pid, as it is on the screen. */
  async program(says = ''): Promise<string> {
    const query = { cols: 80, rows: 24, agent: this.params.sessionId };
    const signal = AbortSignal.timeout(STATE_DEADLINE_MS);
    const stream = await this.#vm.client.open(openTerminal, { query }, { signal });
    let shown = '';
    const reader = new FrameReader((kind, content) => {
      if (kind === TERMINAL_FRAME.bytes) shown += content.toString('utf8');
    });
    stream.on('data', (chunk: Buffer) => reader.push(chunk));
    if (says !== '') stream.write(bytesFrames(Buffer.from(`${says}\r`)));
    while (!/scripted agent \d+/.test(shown) || !shown.includes(`heard: ${says}`))
      await once(stream, 'data', { signal });
    stream.destroy();
    return /scripted agent (\d+)/.exec(shown)?.[1] ?? '';
  }

  async effects(): Promise<string[]> {
    return (await outputOf(this.#vm.client, 'cat ~/agent-effects')).split('\n');
  }
}

export function agentsConform(current: () => Subject, { spec }: ConformanceOptions, isolates: boolean): void {
  describe('agent sessions of a VM', () => {
    it('run a turn once, ask, are interrupted and recover after the end of their agent', async () => {
      const vm = await current().create(spec);
      assert.deepEqual(await vm.client.call(listAgents, {}), { sessions: [] });
      const session = new AgentSubject(vm);
      assert.equal((await session.start()).outcome, 'ready');
      const { turnId } = await session.send('run id -un; pwd');
      await session.reaches(turnId, 'completed');
      assert.deepEqual(await session.replies(), [[1, 'berth\n/code\n']]);
      assert.equal((await session.send('run id -un', turnId)).state, 'completed');
      assert.deepEqual(await session.effects(), [turnId]);

      const asking = await session.send('ask it');
      await session.reaches(asking.turnId, 'waiting');
      await assert.rejects(session.send('say no'), { code: 'agent_turn_active' });
      const { prompt } = await session.view();
      await assert.rejects(session.answer(String(prompt?.requestId), 'accept'), { code: 'agent_prompt_not_pending' });
      await session.answer(prompt?.requestId ?? 0, 'decline');
      await session.reaches(asking.turnId, 'completed');

      const long = await session.send('background sleep 1000\nrun sleep 1000');
      await session.interrupt();
      await session.reaches(long.turnId, 'canceled');
      assert.equal(await outputOf(vm.client, 'ps -C sleep -o stat= | grep -v Z || echo none'), 'none');

      // On the fake driver this would end bridge and daemon too: they run as the same user.
      const lost = await session.send(isolates ? 'run kill -9 -1' : 'crash');
      assert.equal((await session.reaches(lost.turnId, 'failed')).reason, 'agent_ended');
      assert.equal((await session.start('recover')).outcome, 'ready');
      const last = await session.send('history');
      await session.reaches(last.turnId, 'completed');
      assert.equal((await session.replies()).at(-1)?.[1], '5');
      await current().destroy(vm);
    });

    it('get the variables of their start, also in a guest that lacks the bridge program', async () => {
      const vm = await current().create(spec);
      const session = new AgentSubject(vm);
      const variables = randomBytes(16).toString('hex');
      await vm.client.call(stageVariables, { params: { variablesId: variables }, body: { env: ['TEXT=two\nlines'] } });
      assert.equal((await session.start('create', { variables })).outcome, 'ready');
      const { turnId } = await session.send('run echo "$TEXT"');
      await session.reaches(turnId, 'completed');
      assert.deepEqual(await session.replies(), [[1, 'two\nlines\n']]);
      await current().destroy(vm);
    });

    it('keep a running turn and a pending approval over sleep and wake', async () => {
      const vm = await current().create(spec);
      const session = new AgentSubject(vm);
      await session.start();
      const { turnId } = await session.send('stream 20 50\nask it\nsay after');
      await current().sleep(vm, spec);
      await current().wake(vm);
      await session.reaches(turnId, 'waiting');
      const before = await session.view();
      await current().sleep(vm, spec);
      await current().wake(vm);
      assert.deepEqual(await session.view(), before);
      await session.answer(before.prompt?.requestId ?? 0, 'accept');
      await session.reaches(turnId, 'completed');
      assert.deepEqual(
        (await session.replies(20)).map(([, reply]) => reply),
        ['decision accept', 'after'],
      );
      assert.deepEqual(await session.effects(), [turnId]);
      await current().destroy(vm);
    });

    it('keep the program of a terminal without connections, and over sleep and wake; not over a boot', async () => {
      const vm = await current().create(spec);
      const session = new AgentSubject(vm);
      assert.equal((await session.start('create', { surface: 'terminal' })).outcome, 'ready');
      const pid = await session.program('before');
      assert.equal(await outputOf(vm.client, `stat -c %U /proc/${pid}`), 'berth');
      await current().sleep(vm, spec);
      await current().wake(vm);
      assert.equal(await session.program('after'), pid);
      assert.equal((await session.view()).bridge, 'ready');

      await outputOf(vm.client, 'sync');
      await current().driver.destroy(vm.folder, vm.saved.at(-1) ?? null);
      await current().boot(vm);
      const { bridge, bridgeReason } = await session.view();
      assert.deepEqual([bridge, bridgeReason], ['stopped', 'machine_lost']);
      await assert.rejects(session.program(), { code: 'agent_bridge_stopped' });
      assert.equal((await session.start('create', { surface: 'terminal' })).outcome, 'ready');
      await session.program('again');
      await current().destroy(vm);
    });

    it('lose their turn at a boot of the disk, never run it again, and use no cursor twice', async () => {
      const vm = await current().create(spec);
      const session = new AgentSubject(vm);
      await session.start();
      const { turnId } = await session.send('say kept\nhang');
      const late = `trn_${letters()}`;
      assert.equal((await session.void(late)).state, 'void');
      while ((await session.replies()).length === 0) await delay(POLL_MS);

      await outputOf(vm.client, 'sync');
      await current().driver.destroy(vm.folder, vm.saved.at(-1) ?? null);
      await current().boot(vm);
      const view = await session.view();
      assert.deepEqual(
        [view.bridge, view.bridgeReason, view.turn?.state, view.turn?.reason],
        ['stopped', 'machine_lost', 'failed', 'machine_lost'],
      );
      assert.equal((await session.send('say again', turnId)).state, 'failed');
      await assert.rejects(session.send('say late', late), { code: 'agent_turn_void' });
      assert.equal((await session.start('recover')).outcome, 'ready');
      const next = await session.send('history');
      await session.reaches(next.turnId, 'completed');
      const [kept, after] = await session.replies();
      assert.deepEqual(kept, [1, 'kept']);
      assert.ok((after?.[0] ?? 0) > AGENT_SEQ_GAP);
      assert.equal(after?.[1], '2');
      assert.deepEqual(await session.effects(), [turnId, next.turnId]);
      await current().destroy(vm);
    });
  });
}
