// The state machine of a live agent session: takes each turn id once, runs one turn at a time, and
// owns approvals and replies. Each acknowledged change is in the files before its response.
//
//   (none) --take--> running <-> waiting --> completed | failed | canceled
//                       └────────┴──interrupt──> interrupting --> canceled
//   (none) --void--> void
import { setImmediate } from 'node:timers';
import { AGENT_INTERRUPT_MS } from '@berth/protocol/agent-errors.ts';
import type { GuestAgentView, GuestPromptText, GuestTurn } from '@berth/protocol/agents.ts';
import { messageOf } from '@berth/os/errors.ts';
import type { AgentDriver, AgentPrompt, Decision, TurnEnd } from './driver.ts';
import type { SessionFiles, SessionState } from './files.ts';
import { Prompts } from './prompts.ts';
import { AgentRefused } from './refusal.ts';
import { newTurnId, TurnRecords, type ActiveTurn, type Message } from './turn-records.ts';
import { bridgeHas } from './version.ts';

interface SessionHooks {
  /** Called with the view after each change, which is in the files. */
  changed(view: GuestAgentView): void;
  /** Kills the processes that began at these ticks or later; the agent as well, if `agent`. */
  killSince(ticks: number, agent: boolean): Promise<void>;
  /** Starts the agent again, after its turn could not be interrupted. */
  restart(): Promise<void>;
}

export class Session {
  readonly #files: SessionFiles;
  readonly #hooks: SessionHooks;
  readonly #records: TurnRecords;
  readonly #prompts = new Prompts();
  #state: SessionState;
  #driver: AgentDriver | null = null;
  #active: ActiveTurn | null = null;
  #isDirty = false;
  #isSignDue = false;

  constructor(files: SessionFiles, state: SessionState, hooks: SessionHooks) {
    this.#files = files;
    this.#hooks = hooks;
    this.#records = new TurnRecords(files);
    this.#state = state;
  }

  get view(): GuestAgentView {
    return this.#state.view;
  }

  /** Conversation to resume. Agents save it with its first message only. */
  get savedId(): string | null {
    return this.#records.hasTurns ? this.#state.savedId : null;
  }

  get isIdle(): boolean {
    return this.#active === null;
  }

  /** The agent is ready; null: it takes no messages. */
  ready(driver: AgentDriver | null): void {
    this.#driver = driver;
    if (this.view.conversation === undefined) this.#state.savedId = driver?.savedId ?? null;
    const conversation = driver?.savedId == null ? 'pending' : 'open';
    this.#change({ bridge: 'ready', bridgeReason: null, ...(this.view.conversation && { conversation }) });
    this.flush();
  }

  /** The agent's program shows this conversation, which messages go to. */
  shows(): void {
    this.#change({ conversation: 'open' });
    this.flush();
  }

  take(turnId: string, text: string, author: string, keyed: boolean): { turn: GuestTurn; known: boolean } {
    if (keyed && !bridgeHas('keyedMessages'))
      throw new AgentRefused('agent_bridge_too_old', 'this bridge does not support keyed messages');

    const known = this.#records.get(turnId);
    if (known?.state === 'void') throw new AgentRefused('agent_turn_void', 'the turn was declared undelivered');
    if (known !== undefined) return { turn: this.#shown(known), known: true };

    const driver = this.#driver;
    if (driver === null || driver.savedId === null) throw new AgentRefused('agent_not_ready', 'the agent is starting');
    if (!this.isIdle) throw new AgentRefused('agent_turn_active', 'another turn is active');

    const active = this.#begin({ turnId, author, text });
    // Before the flush, which a full disk fails: a recorded turn must come to an end.
    void this.#follow(driver, active, () => driver.run(turnId, text));
    this.flush();
    return { turn: active.turn, known: false };
  }

  /** Begins a turn of a person in the agent's program. False while another one is active. */
  begins(text: string, end: () => Promise<TurnEnd>): boolean {
    const driver = this.#driver;
    if (driver === null || this.#active !== null) return false;
    void this.#follow(driver, this.#begin({ turnId: newTurnId(), author: null, text }), end);
    this.flush();
    return true;
  }

  turn(turnId: string): GuestTurn | null {
    const known = this.#records.get(turnId);
    return known === undefined ? null : this.#shown(known);
  }

  /** Declares an unknown turn undelivered: it never runs. */
  void(turnId: string): GuestTurn {
    if (this.#records.get(turnId) === undefined)
      this.#records.write({ turnId, state: 'void', reason: null, atUnixMs: Date.now(), number: 0 });

    return this.turn(turnId) as GuestTurn;
  }

  answer(requestId: number | string, decision: Decision): { repeated: boolean } {
    const earlier = this.#records.answer(requestId);
    if (earlier !== undefined && earlier === decision) return { repeated: true };

    const pending = earlier === undefined ? this.#prompts.first(requestId) : null;
    if (pending === null) throw new AgentRefused('agent_prompt_not_pending', 'this approval is not pending');

    // A write that fails leaves the approval pending, or answered; never lost.
    this.#records.write({ requestId: pending.shown.requestId, decision });
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
    const seq = this.#state.nextSeq++;
    this.#records.addReply(seq, active.turn.turnId, text);
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
    const requestId = this.#state.nextRequest++;
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

  #begin(message: Message): ActiveTurn {
    this.#state.savedId = this.#driver?.savedId ?? null;
    this.#active = this.#records.begin({ number: this.#state.nextNumber++, ...message });
    this.#change({ turn: this.#active.turn });
    return this.#active;
  }

  async #follow(driver: AgentDriver, active: ActiveTurn, run: () => Promise<TurnEnd>): Promise<void> {
    let end: TurnEnd;
    try {
      end = await run();
    } catch (error) {
      end = { state: 'failed', message: messageOf(error) };
    }
    if (this.#active !== active || this.#driver !== driver) return;

    const isInterrupted = active.turn.state === 'interrupting';
    if (end.state === 'failed') console.error(`turn ${active.turn.turnId}: ${end.message.slice(0, 2_000)}`);

    const state = end.state === 'failed' && isInterrupted ? 'canceled' : end.state;
    clearTimeout(active.force);
    // A person who interrupts a turn in the program keeps its processes.
    const isOurs = active.turn.isPersons === undefined;
    if (isInterrupted || (state === 'canceled' && isOurs)) await this.#hooks.killSince(active.ticks, false);

    this.#end(active, state, state === 'failed' ? 'agent_error' : null);
  }

  /** Ends and resumes an agent that did not end its interrupted turn in time. */
  async #force(active: ActiveTurn): Promise<void> {
    if (this.#active !== active) return;

    this.#driver = null;
    await this.#hooks.killSince(active.ticks, true);
    this.#change({ bridge: 'starting' });
    this.#end(active, 'canceled', null);
    await this.#hooks.restart();
  }

  #end(active: ActiveTurn, state: 'completed' | 'failed' | 'canceled', reason: GuestTurn['reason']): void {
    if (this.#active !== active) return;

    const { turnId } = active.turn;
    clearTimeout(active.force);
    this.#records.write({ turnId, state, reason, atUnixMs: Date.now() });
    this.#active = null;
    this.#prompts.clear();
    this.#change({ turn: this.#records.get(turnId) ?? null, prompt: null });
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
    return known.turnId === this.#active?.turn.turnId ? this.#active.turn : known;
  }

  /** Changes the view; several changes of one event become one revision. */
  #change(changes: Partial<GuestAgentView>): void {
    this.#state.view = { ...this.view, ...changes };
    if (this.#isDirty) return;

    this.#isDirty = true;
    setImmediate(() => this.flush());
  }
}
