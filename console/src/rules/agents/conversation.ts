// The turns of a conversation with their replies, read in pages. Everything in them is the guest's.
import type { api } from '@berth/sdk';

export interface Transcript {
  turns: readonly api.AgentTurnWithMessage[];
  replies: readonly api.AgentOutputMessage[];
  /** Cursors behind what was read. */
  turnsAfter: string | undefined;
  repliesAfter: string | undefined;
  /** Older entries were dropped. */
  trimmed: boolean;
}

export const UNREAD: Transcript = {
  turns: [],
  replies: [],
  turnsAfter: undefined,
  repliesAfter: undefined,
  trimmed: false,
};

/** A page keeps the newest entries, at most as many and as long. */
const MOST_ENTRIES = 5_000;
const MOST_CHARACTERS = 20_000_000;

/** The newest of both, by their position; an entry that was read twice is kept once. */
function joined<T extends { text: string }>(old: readonly T[], more: readonly T[], positionOf: (entry: T) => number) {
  const last = old.at(-1);
  const added = last === undefined ? more : more.filter((entry) => positionOf(entry) > positionOf(last));
  const all = [...old, ...added];
  let characters = 0;
  const cut = all.findLastIndex((entry, index) => {
    characters += entry.text.length;
    return characters > MOST_CHARACTERS || all.length - index > MOST_ENTRIES;
  });
  return { kept: all.slice(cut + 1), trimmed: cut >= 0 };
}

export function withTurns(transcript: Transcript, page: api.ListAgentTurnsResult): Transcript {
  const { kept, trimmed } = joined(transcript.turns, page.turns, ({ number }) => number);
  return { ...transcript, turns: kept, turnsAfter: page.nextCursor, trimmed: transcript.trimmed || trimmed };
}

export function withReplies(transcript: Transcript, page: api.GetAgentOutputResult): Transcript {
  const { kept, trimmed } = joined(transcript.replies, page.messages, ({ seq }) => seq);
  return { ...transcript, replies: kept, repliesAfter: page.nextCursor, trimmed: transcript.trimmed || trimmed };
}

/** Whether the session has turns that the transcript lacks. */
export function lacksTurns({ turns }: Transcript, { recentTurns = [] }: api.AgentSession): boolean {
  const known = new Set(turns.map(({ turnId }) => turnId));
  return recentTurns.some(({ turnId }) => !known.has(turnId));
}

export interface ShownTurn {
  turnId: string;
  /** Null: its message was not read. */
  turn: api.AgentTurnWithMessage | null;
  /** Current state; null if unknown. */
  state: api.AgentTurn | null;
  replies: api.AgentOutputMessage[];
}

/** Turns in their order, each with its replies; the session knows newer states of the last ones. */
export function shownTurns(transcript: Transcript, recent: readonly api.AgentTurn[]): ShownTurn[] {
  const states = new Map(recent.map((turn) => [turn.turnId, turn]));
  const shown = new Map<string, ShownTurn>();
  for (const turn of transcript.turns) {
    const { turnId } = turn;
    shown.set(turnId, { turnId, turn, state: states.get(turnId) ?? turn, replies: [] });
  }
  for (const reply of transcript.replies) {
    const { turnId } = reply;
    const found = shown.get(turnId) ?? { turnId, turn: null, state: states.get(turnId) ?? null, replies: [] };
    shown.set(turnId, found);
    found.replies.push(reply);
  }
  return [...shown.values()];
}

export function hasActiveTurn({ turnId, turnEndedAt }: Pick<api.AgentSession, 'turnId' | 'turnEndedAt'>): boolean {
  return turnId !== null && turnEndedAt === null;
}

const askedAtOf = ({ pendingInput, stateAt }: api.AgentSession): number => Date.parse(pendingInput?.askedAt ?? stateAt);

/** Order of the inbox: the longest waiting first. */
export const byAskedAt = (one: api.AgentSession, other: api.AgentSession): number =>
  askedAtOf(one) - askedAtOf(other) || (one.id < other.id ? -1 : 1);

/** Time for which the buttons of an approval do nothing after it has appeared or changed. */
export const CARD_DEAD_MS = 400;

/** Identifies an approval with everything that a person decides about. */
export function cardKeyOf(pending: api.AgentPendingInput): string {
  const { requestId, turnId, kind, title, detail, truncated } = pending;
  return JSON.stringify([requestId, turnId, kind, title, detail, truncated]);
}

/** Empty lines beyond these are counted: they could push the end of a text out of sight. */
const EMPTY_LINES = /\n(?:[^\S\n]*\n){4,}/g;

export const compactLines = (text: string): string =>
  text.replaceAll(EMPTY_LINES, (lines) => `\n⟨${lines.split('\n').length - 2} empty lines⟩\n`);
