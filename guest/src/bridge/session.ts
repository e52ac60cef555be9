// The state machine of a live agent session: takes each turn id once, runs one turn at a time, and
// owns approvals and replies. Each acknowledged change is in the files before its response.
//
//   (none) --take--> running <-> waiting --> completed | failed | canceled
//                       └────────┴──interrupt──> interrupting --> canceled
//   (none) --void--> void
import { setImmediate } from 'node:timers';
import { AGENT_INTERRUPT_MS, AGENT_TEXT_UNITS } from '@berth/protocol/agent-errors.ts';
import type { GuestAgentView, GuestPromptText, GuestTurn } from '@berth/protocol/agents.ts';
import { messageOf } from '@berth/os/errors.ts';
import type { AgentDriver, AgentPrompt, Decision, TurnEnd } from './driver.ts';
import { applyLine, turnOf, type History, type SessionFiles, type SessionState, type TurnLine } from './files.ts';
import { ticksNow } from './processes.ts';
import { cut, Prompts } from './prompts.ts';
import { AgentRefused } from './refusal.ts';
import { bridgeHas } from './version.ts';

interface SessionHooks {
  /** Called with the view after each change, which is in the files. */
  changed(view: GuestAgentView): void;
  /** Kills the processes that began at these ticks or later; the agent as well, if `agent`. */
  killSince(ticks: number, agent: boolean): Promise<void>;
  /** Starts the agent again, after its turn could not be interrupted. */
  restart(): Promise<void>;
}

interface Active {
  turn: GuestTurn;
  ticks: number;
  force: NodeJS.Timeout | undefined;
}

export class Session {
  readonly #files: SessionFiles;
  readonly #hooks: SessionHooks;
  readonly #history: History;
  readonly #prompts = new Prompts();
  #state: SessionState;
  #driver: AgentDriver | null = null;
  #active: Active | null = null;
  #isDirty = false;
  #isSignDue = false;

  constructor(files: SessionFiles, state: SessionState, hooks: SessionHooks) {
    this.#files = files;
    this.#hooks = hooks;
    const { turns, answers } = files.history();
    this.#history = { turns: new Map(turns), answers: new Map(answers) };
    this.#state = state;
  }

  get view(): GuestAgentView {
    return this.#state.view;
  }

  /** Conversation to resume. Agents save it with its first message only. */
  get savedId(): string | null {
    return [...this.#history.turns.values()].some(({ state }) => state !== 'void') ? this.#state.savedId : null;
  }

  get isIdle(): boolean {
    return this.#active === null;
  }

  /** The agent is ready; null: it takes no messages. */
  ready(driver: AgentDriver | null): void {
    this.#driver = driver;
    this.#state.savedId = driver?.savedId ?? null;
    this.#change({ bridge: 'ready', bridgeReason: null });
    this.flush();
  }

  take(turnId: string, text: string, author: string, keyed: boolean): { turn: GuestTurn; known: boolean } {
    if (keyed && !bridgeHas('keyedMessages'))
      throw new AgentRefused('agent_bridge_too_old', 'this bridge does not support keyed messages');

    const known = this.#history.turns.get(turnId);
    if (known?.state === 'void') throw new AgentRefused('agent_turn_void', 'the turn was declared undelivered');
    if (known !== undefined) return { turn: this.#shown(known), known: true };

    const driver = this.#driver;
    if (driver === null) throw new AgentRefused('agent_not_ready', 'the agent is starting');
    if (this.#active !== null) throw new AgentRefused('agent_turn_active', 'another turn is active');

    const number = this.#state.nextNumber;
    this.#state.nextNumber += 1;
    const ticks = ticksNow();
    this.#files.addMessage({ number, turnId, author, text });
    this.#record({ turnId, state: 'running', reason: null, atUnixMs: Date.now(), number, ticks });
    const turn = turnOf(this.#history.turns.get(turnId) as GuestTurn);
    const active = { turn, ticks, force: undefined };
    this.#active = active;
    this.#change({ turn });
    // Before the flush, which a full disk fails: a recorded turn must come to an end.
    void this.#run(driver, active, text);
    this.flush();
    return { turn, known: false };
  }

  turn(turnId: string): GuestTurn | null {
    const known = this.#history.turns.get(turnId);
    return known === undefined ? null : this.#shown(known);
  }

  /** Declares an unknown turn undelivered: it never runs. */
  void(turnId: string): GuestTurn {
    if (!this.#history.turns.has(turnId))
      this.#record({ turnId, state: 'void', reason: null, atUnixMs: Date.now(), number: 0 });

    return this.turn(turnId) as GuestTurn;
  }

  answer(requestId: number | string, decision: Decision): { repeated: boolean } {
    const earlier = typeof requestId === 'number' ? this.#history.answers.get(requestId) : undefined;
    if (earlier !== undefined && earlier === decision) return { repeated: true };

    const pending = earlier === undefined ? this.#prompts.first(requestId) : null;
    if (pending === null) throw new AgentRefused('agent_prompt_not_pending', 'this approval is not pending');

    // A write that fails leaves the approval pending, or answered; never lost.
    this.#record({ requestId: pending.shown.requestId, decision });
    this.#prompts.removeFirst();
    pending.answer(decision);
    this.#showPrompts();
    this.flush();
    return { repeated: false };
  }

  promptText(isFull: boolean): GuestPromptText | null {
    return this.#prompts.text(isFull);
  }

  interrupt(): void {
    const active = this.#active;
    if (active === null) throw new AgentRefused('agent_turn_not_active', 'no turn is active');
    if (active.turn.state === 'interrupting') return;

    this.#prompts.clear();
    this.#showTurn({ ...active.turn, state: 'interrupting' }, null);
    active.force = setTimeout(() => void this.#force(active), AGENT_INTERRUPT_MS);
    this.#driver
      ?.interrupt()
      .catch((error: unknown) => console.error(`interrupting the agent failed: ${messageOf(error)}`));
    this.flush();
  }

  /** The agent's requests wait for a person from now on, also in the active turn. */
  requireApprovals(): void {
    this.#state.approvals = 'ask';
    this.#files.writeState(this.#state);
  }

  /** A completed reply of the active turn. */
  reply(text: string): void {
    const active = this.#active;
    if (active === null) return;
    const whole = text.toWellFormed();
    const kept = cut(whole, AGENT_TEXT_UNITS, false);
    const seq = this.#state.nextSeq;
    const truncated = kept.length < whole.length;
    this.#state.nextSeq += 1;
    this.#files.addReply({ seq, turnId: active.turn.turnId, atUnixMs: Date.now(), text: kept, truncated });
    this.#change({ lastSeq: seq, signs: this.view.signs + 1 });
  }

  /** Counts a sign of life. Callers learn of it within a second, without a new revision. */
  sign(): void {
    if (this.#active === null) return;
    this.#state.view.signs += 1;
    if (this.#isSignDue) return;
    this.#isSignDue = true;
    setTimeout(() => {
      this.#isSignDue = false;
      this.#hooks.changed(this.view);
    }, 1_000).unref();
  }

  ask(prompt: AgentPrompt, answer: (decision: Decision) => void): () => void {
    const active = this.#active;
    const isOver = active === null || active.turn.state === 'interrupting';
    if (isOver || this.#state.approvals === 'never') {
      queueMicrotask(() => answer(isOver ? 'cancel' : 'accept'));
      return () => {};
    }
    const requestId = this.#state.nextRequest;
    this.#state.nextRequest += 1;
    const { turnId } = active.turn;
    const shown = { requestId, turnId, kind: prompt.kind, askedUnixMs: Date.now() };
    const withdraw = this.#prompts.add(shown, prompt, answer);
    this.#showPrompts();
    return () => {
      if (withdraw()) this.#showPrompts();
    };
  }

  /** The agent ended by itself; resolves when nothing of its turn runs. */
  async agentEnded(): Promise<void> {
    const active = this.#active;
    this.#driver = null;
    if (active !== null) {
      await this.#hooks.killSince(active.ticks, true);
      this.#end(active, 'failed', 'agent_ended');
    }
    this.stopped('agent_ended');
  }

  stopped(reason: GuestAgentView['bridgeReason']): void {
    this.#driver = null;
    this.#change({ bridge: 'stopped', bridgeReason: reason, prompt: null });
    this.flush();
  }

  /** Writes pending changes, and reports them. */
  flush(): void {
    if (!this.#isDirty) return;

    this.#isDirty = false;
    this.#state.view = { ...this.view, revision: this.view.revision + 1 };
    this.#files.writeState(this.#state);
    this.#hooks.changed(this.view);
  }

  async #run(driver: AgentDriver, active: Active, text: string): Promise<void> {
    let end: TurnEnd;
    try {
      end = await driver.run(active.turn.turnId, text);
    } catch (error) {
      end = { state: 'failed', message: messageOf(error) };
    }
    if (this.#active !== active || this.#driver !== driver) return;

    const isInterrupted = active.turn.state === 'interrupting';
    if (end.state === 'failed') console.error(`turn ${active.turn.turnId}: ${end.message.slice(0, 2_000)}`);

    const state = end.state === 'failed' && isInterrupted ? 'canceled' : end.state;
    clearTimeout(active.force);
    if (isInterrupted || state === 'canceled') await this.#hooks.killSince(active.ticks, false);

    this.#end(active, state, state === 'failed' ? 'agent_error' : null);
  }

  /** Ends and resumes an agent that did not end its interrupted turn in time. */
  async #force(active: Active): Promise<void> {
    if (this.#active !== active) return;

    this.#driver = null;
    await this.#hooks.killSince(active.ticks, true);
    this.#change({ bridge: 'starting' });
    this.#end(active, 'canceled', null);
    await this.#hooks.restart();
  }

  #end(active: Active, state: 'completed' | 'failed' | 'canceled', reason: GuestTurn['reason']): void {
    if (this.#active !== active) return;

    const { turnId } = active.turn;
    clearTimeout(active.force);
    this.#record({ turnId, state, reason, atUnixMs: Date.now() });
    this.#active = null;
    this.#prompts.clear();
    this.#change({ turn: turnOf(this.#history.turns.get(turnId) as GuestTurn), prompt: null });
    this.flush();
  }

  #showPrompts(): void {
    const active = this.#active;
    if (active === null) return;

    const prompt = this.#prompts.shown;
    const isInterrupting = active.turn.state === 'interrupting';
    const state = isInterrupting ? 'interrupting' : prompt === null ? 'running' : 'waiting';
    this.#showTurn({ ...active.turn, state }, prompt);
  }

  #showTurn(turn: GuestTurn, prompt: GuestAgentView['prompt']): void {
    if (this.#active === null) return;

    this.#active.turn = turn;
    this.#change({ turn, prompt, signs: this.view.signs + 1 });
  }

  /** A recorded turn with its current state. */
  #shown(known: GuestTurn): GuestTurn {
    return turnOf(known.turnId === this.#active?.turn.turnId ? this.#active.turn : known);
  }

  #record(line: TurnLine): void {
    this.#files.addTurn(line);
    applyLine(this.#history, line);
  }

  /** Changes the view; several changes of one event become one revision. */
  #change(changes: Partial<GuestAgentView>): void {
    this.#state.view = { ...this.view, ...changes };
    if (this.#isDirty) return;

    this.#isDirty = true;
    setImmediate(() => this.flush());
  }
}
