// The active turn of a driver, from its message to its end.
import type { TurnEnd } from './driver.ts';

export class ActiveRun {
  readonly ended: Promise<TurnEnd>;
  readonly end: (end: TurnEnd) => void;
  /** An interrupt or a cancel was sent: a turn that does not complete is `canceled`. */
  isCanceled = false;
  /** The agent's id of the turn, once known. */
  nativeId: string | null = null;

  constructor() {
    const { promise, resolve } = Promise.withResolvers<TurnEnd>();
    this.ended = promise;
    this.end = resolve;
  }
}
