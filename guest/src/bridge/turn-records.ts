// The recorded turns and answers of a live session, as its files have them.
import { AGENT_TEXT_UNITS } from '@berth/protocol/agent-errors.ts';
import type { GuestTurn } from '@berth/protocol/agents.ts';
import type { Decision } from './driver.ts';
import { applyLine, turnOf, type History, type SessionFiles, type TurnLine } from './files.ts';
import { ticksNow } from './processes.ts';
import { cut } from './prompts.ts';

const LETTERS = 'abcdefghijklmnopqrstuvwxyz234567';
const ID_LETTERS = 24;

export interface Message {
  turnId: string;
  /** Null: a person in the agent's terminal. */
  author: string | null;
  text: string;
}

export interface ActiveTurn {
  turn: GuestTurn;
  /** Its start, in the kernel's ticks. */
  ticks: number;
  /** Ends its agent if it does not end by itself after an interrupt. */
  force: NodeJS.Timeout | undefined;
}

export class TurnRecords {
  readonly #files: SessionFiles;
  readonly #history: History;

  constructor(files: SessionFiles) {
    this.#files = files;
    const { turns, answers } = files.history();
    this.#history = { turns: new Map(turns), answers: new Map(answers) };
  }

  /** Whether the agent was given a message. */
  get hasTurns(): boolean {
    return [...this.#history.turns.values()].some(({ state }) => state !== 'void');
  }

  get(turnId: string): GuestTurn | undefined {
    const known = this.#history.turns.get(turnId);
    return known === undefined ? undefined : turnOf(known);
  }

  answer(requestId: number | string): Decision | undefined {
    return typeof requestId === 'number' ? this.#history.answers.get(requestId) : undefined;
  }

  /** Records a message and the start of its turn. */
  begin({ number, turnId, author, text }: Message & { number: number }): ActiveTurn {
    const ticks = ticksNow();
    const kept = cut(text.toWellFormed(), AGENT_TEXT_UNITS, false);
    this.#files.addMessage({ number, turnId, author: author ?? '', text: kept });
    const persons = author === null ? ({ isPersons: true } as const) : {};
    this.write({ turnId, state: 'running', reason: null, atUnixMs: Date.now(), number, ticks, ...persons });
    return { turn: this.get(turnId) as GuestTurn, ticks, force: undefined };
  }

  addReply(seq: number, turnId: string, text: string): void {
    const whole = text.toWellFormed();
    const kept = cut(whole, AGENT_TEXT_UNITS, false);
    this.#files.addReply({ seq, turnId, atUnixMs: Date.now(), text: kept, truncated: kept.length < whole.length });
  }

  write(line: TurnLine): void {
    this.#files.addTurn(line);
    applyLine(this.#history, line);
  }
}

/** Id of a turn that no caller named. */
export function newTurnId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(ID_LETTERS));
  return `trn_${Array.from(bytes, (byte) => LETTERS.charAt(byte & 31)).join('')}`;
}
