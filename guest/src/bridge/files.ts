// Files of an agent session, in its folder on the disk. Written by its live bridge alone; by the
// guest daemon while there is none.
//
//   session.json     state; replaced as a whole
//   turns.jsonl      start, end or void of each turn, and the answers of approvals
//   messages.jsonl   text of each turn
//   output.jsonl     completed replies; output-old.jsonl: those before
//   owner.json       processes of the last bridge (since version 4)
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { AGENT_SEQ_GAP } from '@berth/protocol/agent-errors.ts';
import type { GuestAgentView, GuestReply, GuestTurn } from '@berth/protocol/agents.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { makeFolders } from '../machine/make-folder.ts';
import type { Decision } from './driver.ts';
import { Journal, NumberedLines, parseLine, readLines, readSmallJson } from './journal.ts';

/** Size of output.jsonl that moves it to output-old.jsonl: 64 to 128 MiB of replies are kept. */
const OUTPUT_BYTES = 64 * 1_024 * 1_024;

export interface SessionState {
  view: GuestAgentView;
  bridgeSha256: string;
  /** Conversation id of the agent; null before its first readiness. */
  savedId: string | null;
  approvals: 'ask' | 'never';
  nextRequest: number;
  nextSeq: number;
  nextNumber: number;
}

/** Processes of a bridge and its agent; `agent` is null before its start. */
interface Owners {
  bridge: ProcessIdentity;
  agent: ProcessIdentity | null;
  /** Further processes of the agent. */
  others?: readonly ProcessIdentity[];
}

export type TurnLine =
  | {
      turnId: string;
      state: GuestTurn['state'];
      reason: GuestTurn['reason'];
      atUnixMs: number;
      number?: number;
      /** Start of the turn in the kernel's ticks since boot, to find its processes. */
      ticks?: number;
      /** A person began it in the agent's terminal. */
      isPersons?: true;
    }
  | { requestId: number; decision: Decision };

interface Message {
  number: number;
  turnId: string;
  author: string;
  text: string;
}

/** A turn as recorded. */
type StoredTurn = GuestTurn & { number: number; ticks: number };

/** Turns and answers by their ids, in order. */
export interface History {
  turns: Map<string, StoredTurn>;
  answers: Map<number, Decision>;
}

export const isOver = ({ state }: GuestTurn): boolean => ['completed', 'failed', 'canceled', 'void'].includes(state);

/** Fields of a turn on the wire. */
export function turnOf({ turnId, state, reason, startedUnixMs, endedUnixMs, isPersons }: GuestTurn): GuestTurn {
  return { turnId, state, reason, startedUnixMs, endedUnixMs, ...(isPersons && { isPersons }) };
}

/** Adds a line to the history, as it is read or written. */
export function applyLine({ turns, answers }: History, line: TurnLine): void {
  if ('requestId' in line) {
    answers.set(line.requestId, line.decision);
    return;
  }
  const { turnId, state, reason, atUnixMs, number = 0, ticks = 0, isPersons } = line;
  const known = turns.get(turnId);
  if (known !== undefined) {
    turns.set(turnId, { ...known, state, reason, endedUnixMs: atUnixMs });
  } else {
    const endedUnixMs = state === 'void' ? atUnixMs : null;
    const times = { startedUnixMs: atUnixMs, endedUnixMs, ticks };
    turns.set(turnId, { turnId, state, reason, ...times, number, ...(isPersons && { isPersons }) });
  }
}

/** Reads a session; needs no live bridge, and tolerates one. */
export class SessionReader {
  readonly folder: string;
  readonly #messages: NumberedLines;
  readonly #replies: readonly NumberedLines[];
  readonly #history: History = { turns: new Map(), answers: new Map() };
  #read = 0;

  constructor(folder: string) {
    this.folder = folder;
    this.#messages = new NumberedLines(join(folder, 'messages.jsonl'), 'number');
    this.#replies = ['output-old.jsonl', 'output.jsonl'].map((name) => new NumberedLines(join(folder, name), 'seq'));
  }

  /** Null if there is no session, or a power cut left none of it. */
  state(): SessionState | null {
    const state = readSmallJson(join(this.folder, 'session.json')) as SessionState | null;
    return typeof state?.view === 'object' && state.view !== null ? state : null;
  }

  owners(): Owners | null {
    return readSmallJson(join(this.folder, 'owner.json')) as Owners | null;
  }

  history(): History {
    this.#read = readLines(join(this.folder, 'turns.jsonl'), this.#read, (line) => {
      const value = parseLine(line);
      if (value !== null) applyLine(this.#history, value as unknown as TurnLine);

      return true;
    });
    return this.#history;
  }

  lastSeq(): number {
    return Math.max(...this.#replies.map(({ last }) => last));
  }

  lastNumber(): number {
    return this.#messages.last;
  }

  /** Calls `take` with the replies above `after` until it returns false. */
  replies(after: number, take: (reply: GuestReply) => boolean): void {
    let goesOn = true;
    const takeReply = (value: object): boolean => (goesOn = take(value as GuestReply));
    this.#replies.forEach((file) => goesOn && file.read(after, takeReply));
  }

  messages(after: number, take: (message: Message) => boolean): void {
    this.#messages.read(after, (value) => take(value as unknown as Message));
  }
}

/** Writes a session. */
export class SessionFiles extends SessionReader {
  readonly #turns: Journal;
  readonly #messageLines: Journal;
  readonly #output: Journal;

  constructor(folder: string) {
    makeFolders(0o700, dirname(folder), folder);
    super(folder);
    this.#turns = new Journal(join(folder, 'turns.jsonl'));
    this.#messageLines = new Journal(join(folder, 'messages.jsonl'));
    this.#output = new Journal(join(folder, 'output.jsonl'));
  }

  writeState(state: SessionState): void {
    replaceFile(join(this.folder, 'session.json'), state);
  }

  writeOwners(owners: Owners | null): void {
    const path = join(this.folder, 'owner.json');
    if (owners === null) rmSync(path, { force: true });
    else replaceFile(path, owners);
  }

  addTurn(line: TurnLine): void {
    this.#turns.append(line);
  }

  addMessage({ number, turnId, author, text }: Message): void {
    this.#messageLines.append({ number, turnId, author, text });
  }

  addReply({ seq, turnId, atUnixMs, text, truncated }: GuestReply): void {
    this.#output.rotate(join(this.folder, 'output-old.jsonl'), OUTPUT_BYTES);
    this.#output.append({ seq, turnId, atUnixMs, text, truncated });
  }

  close(): void {
    this.#turns.close();
    this.#messageLines.close();
    this.#output.close();
  }
}

/**
 * State of a session whose bridge is gone: unfinished turns are `failed`. In another run its
 * counters skip the numbers that the disk may have lost. Null if nothing changes.
 */
export function settle(files: SessionFiles, runId: string): SessionState | null {
  const before = files.state();
  if (before === null) return null;

  const isOtherRun = before.view.runId !== runId;
  const { turns } = files.history();
  const unfinished = [...turns.values()].filter((turn) => !isOver(turn));
  const wasLive = before.view.bridge !== 'stopped';
  if (!isOtherRun && !wasLive && unfinished.length === 0) return null;

  const reason = isOtherRun ? 'machine_lost' : 'bridge_ended';
  const atUnixMs = Date.now();
  for (const { turnId } of unfinished) files.addTurn({ turnId, state: 'failed', reason, atUnixMs });

  const gap = isOtherRun ? AGENT_SEQ_GAP : 0;
  const last = [...files.history().turns.values()].findLast(({ state }) => state !== 'void');
  const state: SessionState = {
    ...before,
    nextRequest: before.nextRequest + gap,
    nextSeq: Math.max(before.nextSeq, files.lastSeq() + 1) + gap,
    nextNumber: Math.max(before.nextNumber, files.lastNumber() + 1) + gap,
    view: {
      ...before.view,
      bridge: 'stopped',
      bridgeReason: wasLive ? reason : before.view.bridgeReason,
      runId,
      revision: before.view.revision + gap + 1,
      turn: last === undefined ? null : turnOf(last),
      prompt: null,
      lastSeq: files.lastSeq(),
    },
  };
  files.writeState(state);
  return state;
}

function replaceFile(path: string, value: object): void {
  writeFileSync(`${path}.new`, JSON.stringify(value), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}
