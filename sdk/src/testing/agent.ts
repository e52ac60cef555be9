// An agent session of the test server: turns, replies and approvals.
import { TURN_STATES } from '../generated/service-tables.ts';
import type {
  AgentBridgeReason,
  AgentDecision,
  AgentOutputMessage,
  AgentSession,
  AgentTurnReason,
  AgentTurnState,
  AgentTurnWithMessage,
  Sandbox,
} from '../generated/raw/index.ts';
import type { AgentScript, TestAgentTurn, TestApproval } from './agent-script.ts';
import { viewSession, type TestPrompt } from './agent-view.ts';
import { Refusal } from './requests/refusal.ts';
import { newId } from './ids.ts';

interface Turn extends AgentTurnWithMessage {
  state: AgentTurnState;
  requestKey: string | undefined;
  callerKey: string;
  stop: AbortController;
}

interface Prompt extends TestPrompt {
  resolve: (decision: AgentDecision) => void;
}

interface Message {
  text: string;
  requestKey?: string;
}

interface Sender {
  kind: string;
  userId: string;
  /** The credential. */
  key: string;
}

interface TestAgentSessionOptions {
  sandbox: Sandbox;
  asks: boolean;
  now: () => number;
  onChange: () => void;
}

export class TestAgentSession {
  readonly id = newId('ags');
  readonly sandbox: Sandbox;
  readonly replies: AgentOutputMessage[] = [];
  readonly turns: Turn[] = [];
  readonly createdAt: string;
  readonly #options: TestAgentSessionOptions;
  readonly #answers = new Map<number, AgentDecision>();
  #bridge: 'ready' | 'stopped' = 'ready';
  #bridgeReason: AgentBridgeReason | null = null;
  #prompt: Prompt | null = null;
  #requests = 0;
  #revision = 1;
  #updatedAt: string;

  constructor(options: TestAgentSessionOptions) {
    this.#options = options;
    this.sandbox = options.sandbox;
    this.createdAt = this.#now();
    this.#updatedAt = this.createdAt;
  }

  get revision(): string {
    return `${this.#revision}.${this.sandbox.status}`;
  }

  /** The record; without texts of the approval, as in a list, unless a detail is given. */
  view(detail?: 'short' | 'full'): AgentSession {
    const { id, sandbox, turns, revision, createdAt } = this;
    const bridge = { state: this.#bridge, reason: this.#bridgeReason };
    const times = { createdAt, updatedAt: this.#updatedAt };
    return viewSession({ id, sandbox, turns, revision, bridge, prompt: this.#prompt, ...times }, detail);
  }

  /** Starts a turn, or returns that of an earlier message with the key. */
  send({ text, requestKey }: Message, { key, ...author }: Sender, script: AgentScript): { turn: Turn; isNew: boolean } {
    const earlier =
      requestKey === undefined
        ? undefined
        : this.turns.find((one) => one.requestKey === requestKey && one.callerKey === key);
    if (earlier !== undefined) {
      if (earlier.text !== text) throw new Refusal('request_key_conflict');
      return { turn: earlier, isNew: false };
    }
    this.#requireReady();
    if (this.#active() !== undefined) throw new Refusal('agent_turn_active');
    const turn: Turn = {
      turnId: newId('trn'),
      number: this.turns.length + 1,
      text,
      author,
      state: 'running',
      reason: null,
      startedAt: this.#now(),
      endedAt: null,
      requestKey,
      callerKey: key,
      stop: new AbortController(),
    };
    this.turns.push(turn);
    this.#change();
    void this.#play(turn, script);
    return { turn, isNew: true };
  }

  answer(requestId: unknown, decision: AgentDecision): { repeated: boolean; turn: Turn | undefined } {
    const turn = this.turns.at(-1);
    const before = typeof requestId === 'number' ? this.#answers.get(requestId) : undefined;
    if (before === decision) return { repeated: true, turn };
    this.#requireReady();
    const prompt = this.#prompt;
    if (prompt === null || prompt.requestId !== requestId) throw new Refusal('agent_prompt_not_pending');
    this.#answers.set(prompt.requestId, decision);
    this.#prompt = null;
    prompt.resolve(decision);
    if (turn !== undefined && decision === 'cancel') this.#end(turn, 'canceled');
    else if (turn !== undefined) turn.state = 'running';
    this.#change();
    return { repeated: false, turn };
  }

  interrupt(): Turn {
    this.#requireReady();
    const turn = this.#active();
    if (turn === undefined) throw new Refusal('agent_turn_not_active');
    turn.state = 'interrupting';
    this.#change();
    queueMicrotask(() => this.#end(turn, 'canceled'));
    return turn;
  }

  recover(): void {
    if (this.#bridge === 'ready') return;
    this.#bridge = 'ready';
    this.#bridgeReason = null;
    this.#change();
  }

  /** Ends the agent; an active turn fails. */
  stop(bridgeReason: AgentBridgeReason): void {
    const turn = this.#active();
    const failures: Partial<Record<AgentBridgeReason, AgentTurnReason>> = {
      machine_lost: 'machine_lost',
      agent_ended: 'agent_ended',
    };
    if (turn !== undefined) this.#end(turn, 'failed', failures[bridgeReason] ?? 'bridge_ended');
    this.#bridge = 'stopped';
    this.#bridgeReason = bridgeReason;
    this.#change();
  }

  async #play(turn: Turn, script: AgentScript): Promise<void> {
    const { signal } = turn.stop;
    const facade: TestAgentTurn = {
      id: turn.turnId,
      text: turn.text,
      sandbox: this.sandbox,
      signal,
      reply: (text) => this.#reply(turn, text),
      ask: (approval) => this.#ask(turn, approval),
    };
    try {
      // The message is accepted before the agent starts.
      await Promise.resolve();
      await script(facade);
      this.#end(turn, 'completed');
    } catch {
      this.#end(turn, 'failed', 'agent_error');
    }
  }

  #reply(turn: Turn, text: string): void {
    if (!TURN_STATES[turn.state].active) return;
    const seq = this.replies.length + 1;
    this.replies.push({ seq, turnId: turn.turnId, at: this.#now(), text, truncated: false });
    this.#change();
  }

  async #ask(turn: Turn, approval: TestApproval): Promise<'accept' | 'decline'> {
    const { signal } = turn.stop;
    signal.throwIfAborted();
    if (!this.#options.asks) return 'accept';
    const { title, detail = title, kind = 'command', workingDirectory = '/code' } = approval;
    this.#requests += 1;
    const requestId = this.#requests;
    const decision = await new Promise<AgentDecision>((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      this.#prompt = {
        ...{ requestId, turnId: turn.turnId, kind, askedAt: this.#now(), title, detail, workingDirectory, resolve },
        decisions: ['accept', 'decline', 'cancel'],
        truncated: false,
      };
      turn.state = 'waiting';
      this.#change();
    });
    if (decision === 'cancel') throw signal.reason;
    return decision === 'decline' ? 'decline' : 'accept';
  }

  #end(turn: Turn, state: AgentTurnState, reason: AgentTurnReason | null = null): void {
    if (!TURN_STATES[turn.state].active) return;
    Object.assign(turn, { state, reason, endedAt: this.#now() });
    this.#prompt = null;
    turn.stop.abort(new Error(`the turn is ${state}`));
    this.#change();
  }

  #active(): Turn | undefined {
    const turn = this.turns.at(-1);
    return turn !== undefined && TURN_STATES[turn.state].active ? turn : undefined;
  }

  #requireReady(): void {
    if (this.#bridge !== 'ready') throw new Refusal('agent_bridge_stopped');
  }

  #change(): void {
    this.#revision += 1;
    this.#updatedAt = this.#now();
    this.#options.onChange();
  }

  #now(): string {
    return new Date(this.#options.now()).toISOString();
  }
}
