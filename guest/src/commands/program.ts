// A program that a caller can be connected to: input, output, orders and an exit. Must not know the
// wire, except for the frames of its output.
import type { Writable } from 'node:stream';
import type { TerminalOrder } from '@berth/protocol/calls/connections.ts';

/** Takes frames. false: pause until {@link Program.resume}. */
export type OnFrames = (frames: Uint8Array) => boolean;

export interface Program {
  /** Not writable after its reader has closed it. */
  readonly input: Writable;
  /** Sets the taker of the output. Called once. */
  outputTo(take: OnFrames): void;
  /** Resumes the output. */
  resume(): void;
  /** Carries out the order; false: the program does not support it. */
  order(order: TerminalOrder): boolean;
  /** The last control frame, such as the exit of a terminal, after all its output was taken. */
  readonly ended: Promise<object>;
  /** Ends the program because its caller disconnected. No effect after its exit. */
  hangUp(): void;
}
