// What a caller can have a connection to: a program with its input, its output, orders and an end.
// Must not know how it goes over the wire, but for the frames of its output.
import { constants } from 'node:os';
import type { Writable } from 'node:stream';
import type { TerminalExit, TerminalOrder } from '@berth/protocol/calls/connections.ts';

/** Takes frames. False: no more until {@link Program.goOn}. */
export type TakeFrames = (frames: Uint8Array) => boolean;

export interface Program {
  /** Not writable any more when nobody reads it. */
  readonly input: Writable;
  /** Its output goes there. Called once. */
  outputTo(take: TakeFrames): void;
  /** More output is taken again. */
  goOn(): void;
  /** Whether it takes this order; then it was carried out. */
  order(order: TerminalOrder): boolean;
  /** How it ended, once all that it wrote was taken. Never rejects. */
  readonly ended: Promise<TerminalExit>;
  /** Nobody is there any more: ends it. No effect once it has ended. */
  hangUp(): void;
}

/** How a process ended, as the wire says it. */
export function exitOf(code: number | null, signal: NodeJS.Signals | null): TerminalExit {
  return signal === null ? { exit: code ?? 0 } : { exit: 128 + constants.signals[signal], signal };
}
