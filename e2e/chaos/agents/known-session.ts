// Model of one agent session, built from the responses to its clients: turns by their ids and keys,
// and replies by their numbers. Reports what contradicts the contract.
import { TURN_STATES, type TurnState } from '@berth/contract/agents/state.ts';
import type { AgentTurn } from '@berth/contract/agents/sessions.ts';
import type { Report } from '../judging/report.ts';
import { READERS, repliesOf, scriptOf, type Work } from './plan.ts';

export interface SentMessage {
  number: number;
  work: Work;
  text: string;
  requestKey: string | null;
  /** Null until a response names it. */
  turnId: string | null;
  /** A response with 202 arrived. */
  isTaken: boolean;
  /** Responses that do not call it a replay; two would be two turns. */
  originals: number;
  createdMs: number;
}

interface SeenState {
  state: TurnState;
  reason: string | null;
  /** Time of the response. */
  receivedMs: number;
}

export interface SeenReply {
  seq: number;
  turnId: string;
  text: string;
}

/** A client with its own cursor. */
interface Reader {
  cursor: string | undefined;
  replies: SeenReply[];
}

export class KnownSession {
  readonly id: string;
  readonly sandboxId: string;
  /** A caller was told that it is ready. Without that, the guest may have nothing of it. */
  isAcknowledged: boolean;
  /** The guest has nothing of it. */
  isMissing = false;
  /** A recovery or create without a response may last until then; 0: none. */
  startsUntilMs = 0;
  readonly messages: SentMessage[] = [];
  readonly readers: Reader[] = Array.from({ length: READERS }, () => ({ cursor: undefined, replies: [] }));
  /** Turns that the run itself declared undelivered, at the host. */
  readonly voided: { turnId: string; runId: string }[] = [];
  readonly states = new Map<string, SeenState>();
  readonly #report: Report;
  readonly #replies = new Map<number, SeenReply>();

  constructor(id: string, sandboxId: string, isAcknowledged: boolean, report: Report) {
    this.id = id;
    this.isAcknowledged = isAcknowledged;
    this.sandboxId = sandboxId;
    this.#report = report;
  }

  message(work: Work, number: number, requestKey: string | null): SentMessage {
    const text = scriptOf(work, number);
    const message: SentMessage = {
      number,
      work,
      text,
      requestKey,
      turnId: null,
      isTaken: false,
      originals: 0,
      createdMs: Date.now(),
    };
    this.messages.push(message);
    return message;
  }

  isEndless(turnId: string | null): boolean {
    return this.messages.some((message) => message.turnId === turnId && message.work.kind === 'endless');
  }

  /** Keyed messages whose turns had not ended when they were last seen. */
  unfinished(): SentMessage[] {
    return this.messages.filter(({ turnId, requestKey }) => {
      const seen = turnId === null ? undefined : this.states.get(turnId);
      return requestKey !== null && seen !== undefined && TURN_STATES[seen.state].active;
    });
  }

  /** A response to a message: one key denotes one turn. */
  delivered(
    message: SentMessage,
    turnId: string,
    taken: { state: TurnState; replayed: boolean } | null,
    at: Times,
  ): void {
    const { requestKey } = message;
    if (requestKey !== null && message.turnId !== null && message.turnId !== turnId)
      this.#report.found('turn-replayed', `${this.id}: ${requestKey} is turn ${message.turnId} and turn ${turnId}`);
    message.turnId = turnId;
    if (taken === null) return;
    if (!taken.replayed) message.originals += 1;
    if (message.originals > 1)
      this.#report.found('turn-replayed', `${this.id}: ${requestKey} was taken again as ${turnId}`);
    message.isTaken = true;
    this.#observe({ turnId, state: taken.state, reason: null }, at);
  }

  /** Turns as a response shows them. */
  observe(turns: readonly Pick<AgentTurn, 'turnId' | 'state' | 'reason'>[], at: Times): void {
    for (const turn of turns) this.#observe(turn, at);
  }

  /** A page of a reader, after its cursor. */
  read(reader: Reader, page: readonly SeenReply[], nextCursor: string): void {
    let before = reader.replies.at(-1)?.seq ?? 0;
    for (const { seq, turnId, text } of page) {
      if (seq <= before) this.#report.found('cursor-invalid', `${this.id}: reply ${seq} came after reply ${before}`);
      before = seq;
      this.#keep({ seq, turnId, text });
      reader.replies.push({ seq, turnId, text });
    }
    reader.cursor = nextCursor;
  }

  /** Compares all replies, read from the start, with those of each reader, read to the end. */
  compareReplies(all: readonly SeenReply[]): void {
    const last = new Map(all.map((reply) => [reply.seq, reply]));
    for (const reply of this.#replies.values())
      if (!last.has(reply.seq)) this.#report.found('reply-lost', `${this.id}: reply ${reply.seq}: ${reply.text}`);
    for (const [index, { replies }] of this.readers.entries()) {
      const [own, from] = [replies, all].map((list) => list.map(({ seq }) => seq).join());
      if (own !== from) this.#report.found('cursor-invalid', `${this.id}: reader ${index} saw ${own}, not ${from}`);
    }
  }

  /** Compares replies with the scripts of their turns. A VM lost at `lostMs` may have lost some. */
  compareTexts(all: readonly SeenReply[], lostMs: number): void {
    for (const { turnId, work, number, createdMs } of this.messages) {
      const expected = repliesOf(work, number);
      if (turnId === null || expected === null) continue;
      const texts = all.filter((reply) => reply.turnId === turnId).map(({ text }) => text);
      const what = `${this.id}: turn ${turnId} has the replies ${JSON.stringify(texts)} of ${JSON.stringify(expected)}`;
      const isWhole = texts.length === expected.length || this.states.get(turnId)?.state !== 'completed';
      // An ended command has the output until then.
      const isCut = work.kind === 'tool' && this.states.get(turnId)?.state !== 'completed';
      const isPrefix = isCut || texts.every((text, index) => text === expected[index]);
      if ((!isPrefix || !isWhole) && createdMs > lostMs) this.#report.found('reply-lost', what);
    }
  }

  /** Compares executed turns, and endless commands that run, with the turns. */
  compareEffects(effects: readonly string[], running: readonly number[], lostMs: number): void {
    for (const [turnId, seen] of this.states) {
      const count = effects.filter((id) => id === turnId).length;
      const shown = `${this.id}: turn ${turnId} (${seen.state} ${seen.reason ?? ''}) ran ${count} times`;
      const most = seen.reason === 'not_delivered' ? 0 : 1;
      if (count > most) this.#report.found('turn-replayed', shown);
      const createdMs = this.messages.find((message) => message.turnId === turnId)?.createdMs ?? 0;
      if (count === 0 && seen.state === 'completed' && createdMs > lostMs) this.#report.found('contradiction', shown);
    }
    for (const { turnId } of this.voided)
      if (effects.includes(turnId)) this.#report.found('turn-replayed', `${this.id}: ${turnId} was void, and ran`);
    for (const { turnId, number } of this.messages)
      if (running.includes(number)) this.#report.found('leaked', `${this.id}: the command of turn ${turnId}`);
  }

  #keep(reply: SeenReply): void {
    const known = this.#replies.get(reply.seq);
    if (known === undefined) {
      this.#replies.set(reply.seq, reply);
      this.#report.counts.replies += 1;
    } else if (known.turnId !== reply.turnId || known.text !== reply.text) {
      const what = `${this.id}: reply ${reply.seq} is ${JSON.stringify(known)} and ${JSON.stringify(reply)}`;
      this.#report.found('cursor-invalid', what);
    }
  }

  #observe(
    { turnId, state, reason }: Pick<AgentTurn, 'turnId' | 'state' | 'reason'>,
    { sentMs, receivedMs }: Times,
  ): void {
    const seen = this.states.get(turnId);
    if (seen === undefined) this.#report.counts.turns += 1;
    // A response that began before the last one ended may be older.
    if (seen !== undefined && sentMs < seen.receivedMs) return;
    if (seen !== undefined && !reachable(seen.state, state))
      this.#report.found('contradiction', `${this.id}: turn ${turnId} went from ${seen.state} to ${state}`);
    const kept = reason ?? (seen?.state === state ? seen.reason : null);
    this.states.set(turnId, { state, reason: kept, receivedMs });
  }
}

interface Times {
  sentMs: number;
  receivedMs: number;
}

/** True if the contract's table leads from one state to the other, in any number of steps. */
function reachable(from: TurnState, to: TurnState): boolean {
  const seen = new Set<TurnState>([from]);
  for (const state of seen) for (const next of TURN_STATES[state].next) seen.add(next);
  return seen.has(to);
}
