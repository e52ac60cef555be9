// Agent sessions of the VMs of a test host: a model of the guest daemon, without agents. Tests end
// the turns.
import { randomBytes } from 'node:crypto';
import type { GuestAgentView, GuestReply, GuestTurn } from '@berth/protocol/agents.ts';
import type { AgentErrorCode } from '@berth/protocol/agent-errors.ts';
import { newId } from '../../../src/store/database/ids.ts';
import { type AgentCall } from './exec-front.ts';
import { ExecRefusal } from './exec-refusal.ts';

const refusal = (code: AgentErrorCode): ExecRefusal => new ExecRefusal(code, code.replaceAll('_', ' '));

export class GuestSession {
  view: GuestAgentView;
  readonly turns = new Map<string, GuestTurn>();
  readonly messages: { turnId: string; text: string; author: string }[] = [];
  readonly replies: GuestReply[] = [];
  readonly answers = new Map<number, string>();
  /** As the last start or a later call said. */
  approvals = 'ask';
  #changed = Promise.withResolvers<void>();

  constructor(sessionId: string, agent: string, runId: string, surface: GuestAgentView['surface']) {
    this.view = {
      sessionId,
      agent,
      surface,
      bridge: 'ready',
      bridgeVersion: 7,
      bridgeReason: null,
      runId,
      revision: 1,
      turn: null,
      prompt: null,
      lastSeq: 0,
      signs: 0,
    };
  }

  change(changes: Partial<GuestAgentView>): void {
    this.view = { ...this.view, ...changes, revision: this.view.revision + 1 };
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  /** Waits for the condition; gives up at the time, or when the caller is gone. */
  async held(gone: AbortSignal, waitMs: number, isMet: () => boolean): Promise<void> {
    const over = Promise.withResolvers<void>();
    AbortSignal.any([gone, AbortSignal.timeout(waitMs)]).addEventListener('abort', () => over.resolve());
    for (const end = performance.now() + waitMs; !isMet() && !gone.aborted && performance.now() < end;)
      await Promise.race([this.#changed.promise, over.promise]);
  }

  /** Begins a turn of a person in the terminal; returns its id. */
  type(text: string): string {
    const turnId = newId('agentTurn');
    this.begin(turnId, text, '', { isPersons: true });
    return turnId;
  }

  begin(turnId: string, text: string, author: string, more: Partial<GuestTurn> = {}): GuestTurn {
    const times = { startedUnixMs: Date.now(), endedUnixMs: null };
    const turn: GuestTurn = { turnId, state: 'running', reason: null, ...times, ...more };
    this.turns.set(turnId, turn);
    this.messages.push({ turnId, text, author });
    this.change({ turn });
    return turn;
  }

  /** Ends the active turn. */
  end(state: GuestTurn['state'] = 'completed', reason: GuestTurn['reason'] = null): void {
    const { turn } = this.view;
    if (turn === null) throw new Error('no turn is active');
    const ended = { ...turn, state, reason, endedUnixMs: Date.now() };
    this.turns.set(turn.turnId, ended);
    this.change({ turn: ended, prompt: null });
  }

  /** Asks for an approval; returns its id. */
  ask(): number {
    const { turn } = this.view;
    if (turn === null) throw new Error('no turn is active');
    const requestId = this.answers.size + 1;
    const waiting = { ...turn, state: 'waiting' as const };
    this.turns.set(turn.turnId, waiting);
    this.change({
      turn: waiting,
      prompt: { requestId, turnId: turn.turnId, kind: 'command', askedUnixMs: Date.now() },
    });
    return requestId;
  }

  reply(text: string): void {
    const seq = this.view.lastSeq + 1;
    const turnId = this.view.turn?.turnId ?? '';
    this.replies.push({ seq, turnId, atUnixMs: Date.now(), text, truncated: false });
    this.change({ lastSeq: seq, signs: this.view.signs + 1 });
  }
}

const isActive = (turn: GuestTurn | null): turn is GuestTurn =>
  turn !== null && ['running', 'waiting', 'interrupting'].includes(turn.state);

export class AgentGuests {
  readonly #sessions = new Map<string, GuestSession>();
  readonly #runs = new Map<string, string>();
  /** Calls that arrived. */
  readonly calls: AgentCall[] = [];
  /** Text of pending approvals. */
  promptText = { title: 'Run a command', detail: 'true' };
  /** The guests' clock in views of a session; null as of an older guest. */
  clock: (() => number) | null = null;
  /** Runs before a call takes effect; a rejection is the response. */
  before: (call: AgentCall) => void | Promise<void> = () => undefined;
  /** Runs after a call took effect. */
  after: (call: AgentCall) => void | Promise<void> = () => undefined;

  runOf(vmId: string): string {
    const run = this.#runs.get(vmId) ?? randomBytes(16).toString('hex');
    this.#runs.set(vmId, run);
    return run;
  }

  session(vmId: string, sessionId: string): GuestSession {
    const found = this.#sessions.get(`${vmId}/${sessionId}`);
    if (found === undefined) throw refusal('agent_session_missing');
    return found;
  }

  add(
    vmId: string,
    sessionId: string,
    agent = 'agent_one',
    surface: GuestAgentView['surface'] = 'managed',
  ): GuestSession {
    const session = new GuestSession(sessionId, agent, this.runOf(vmId), surface);
    this.#sessions.set(`${vmId}/${sessionId}`, session);
    return session;
  }

  /** Loses the files of a session. */
  forget(vmId: string, sessionId: string): void {
    this.#sessions.delete(`${vmId}/${sessionId}`);
  }

  /** Boots the disk: another run without a bridge. With `forgets`, its last turns are lost. */
  boot(vmId: string, { forgets = false } = {}): void {
    this.#runs.delete(vmId);
    const runId = this.runOf(vmId);
    for (const [key, session] of this.#sessions) {
      if (!key.startsWith(`${vmId}/`)) continue;
      const { turn } = session.view;
      if (forgets) session.turns.clear();
      else if (isActive(turn)) session.end('failed', 'machine_lost');
      session.change({ runId, bridge: 'stopped', bridgeReason: 'machine_lost', ...(forgets ? { turn: null } : {}) });
    }
  }

  /** Answers a call about agents; throws an {@link ExecRefusal}. */
  async answer(call: AgentCall, gone: AbortSignal): Promise<unknown> {
    this.calls.push(call);
    await this.before(call);
    const result = await this.#answer(call, gone);
    await this.after(call);
    return structuredClone(result);
  }

  async #answer(call: AgentCall, gone: AbortSignal): Promise<unknown> {
    const { vmId, sessionId, verb, turnId, query, body } = call;
    if (sessionId === '') {
      const views = [...this.#sessions].filter(([key]) => key.startsWith(`${vmId}/`)).map(([, { view }]) => view);
      return { sessions: views };
    }
    if (verb === 'start') return this.#start(vmId, sessionId, body);
    const session = this.session(vmId, sessionId);
    if (verb === '') return await this.#get(session, query, gone);
    if (verb === 'output') return await this.#output(session, query, gone);
    if (verb === 'turns' && turnId === undefined) {
      const turns = session.messages.map((message, index) => {
        return { ...session.turns.get(message.turnId), number: index + 1, text: message.text, author: message.author };
      });
      return { turns: turns.filter(({ number }) => number > Number(query.get('after'))), hasMore: false };
    }
    if (verb === 'void') {
      const id = turnId ?? '';
      const none = { startedUnixMs: Date.now(), endedUnixMs: Date.now(), reason: null };
      if (!session.turns.has(id)) session.turns.set(id, { turnId: id, state: 'void', ...none });
      return { turn: session.turns.get(id), session: session.view };
    }
    if (verb === 'turns') return { turn: session.turns.get(turnId ?? '') ?? null, session: session.view };
    if (verb === 'messages') return this.#message(vmId, session, body);
    if (verb === 'approvals') {
      session.approvals = 'ask';
      return { session: session.view };
    }
    if (verb === 'answer') return this.#take(session, body);
    if (verb !== 'interrupt') throw new Error(`the guest has no call ${verb}`);
    if (session.view.bridge !== 'ready') throw refusal('agent_bridge_stopped');
    if (!isActive(session.view.turn)) throw refusal('agent_turn_not_active');
    session.change({ turn: { ...session.view.turn, state: 'interrupting' }, prompt: null });
    return { session: session.view };
  }

  #start(vmId: string, sessionId: string, { agent, mode, approvals, surface }: Record<string, unknown>): unknown {
    const known = this.#sessions.get(`${vmId}/${sessionId}`);
    if (known === undefined && mode === 'recover') throw refusal('agent_session_missing');
    const session = known ?? this.add(vmId, sessionId, String(agent), surface === 'terminal' ? surface : 'managed');
    if (known === undefined || known.view.bridge !== 'ready') session.approvals = String(approvals);
    if (session.view.bridge !== 'ready') session.change({ bridge: 'ready', bridgeReason: null });
    return { outcome: 'ready', session: session.view };
  }

  async #get(session: GuestSession, query: URLSearchParams, gone: AbortSignal): Promise<unknown> {
    const [revision, waitMs] = [query.get('revision'), Number(query.get('waitMs') ?? 0)];
    if (revision !== null && waitMs > 0)
      await session.held(gone, waitMs, () => session.view.revision > Number(revision));
    const { prompt } = session.view;
    const shown = { ...this.promptText, truncated: false, workingDirectory: '/code' };
    return {
      session: session.view,
      recentTurns: [...session.turns.values()]
        .filter(({ state }) => state !== 'void')
        .slice(-10)
        .reverse(),
      prompt: prompt === null ? null : { ...prompt, ...shown },
      ...(this.clock === null ? {} : { nowUnixMs: this.clock() }),
    };
  }

  async #output(session: GuestSession, query: URLSearchParams, gone: AbortSignal): Promise<unknown> {
    const after = Number(query.get('after'));
    const limit = Number(query.get('limit'));
    const waitMs = Number(query.get('waitMs') ?? 0);
    const behind = (): GuestReply[] => session.replies.filter(({ seq }) => seq > after);
    if (waitMs > 0) await session.held(gone, waitMs, () => behind().length > 0);
    return { replies: behind().slice(0, limit), hasMore: behind().length > limit };
  }

  #message(vmId: string, session: GuestSession, body: Record<string, unknown>): unknown {
    const turnId = String(body['turnId']);
    if (body['runId'] !== this.runOf(vmId)) throw refusal('agent_run_over');
    if (session.view.bridge !== 'ready') throw refusal('agent_bridge_stopped');
    const known = session.turns.get(turnId);
    if (known?.state === 'void') throw refusal('agent_turn_void');
    if (known !== undefined) return { turn: known, known: true, session: session.view };
    if (isActive(session.view.turn)) throw refusal('agent_turn_active');
    const turn = session.begin(turnId, String(body['text']), String(body['author']));
    return { turn, known: false, session: session.view };
  }

  #take(session: GuestSession, { requestId, decision }: Record<string, unknown>): unknown {
    const earlier = session.answers.get(requestId as number);
    if (earlier !== undefined && earlier === decision) return { repeated: true, session: session.view };
    if (earlier === undefined && session.view.bridge !== 'ready') throw refusal('agent_bridge_stopped');
    const { prompt, turn } = session.view;
    if (prompt === null || turn === null || prompt.requestId !== requestId) throw refusal('agent_prompt_not_pending');
    session.answers.set(prompt.requestId, String(decision));
    const running = { ...turn, state: 'running' as const };
    session.turns.set(turn.turnId, running);
    session.change({ turn: running, prompt: null });
    return { repeated: false, session: session.view };
  }
}
