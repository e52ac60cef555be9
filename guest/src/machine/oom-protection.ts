// Keeps the daemon from being the one that the kernel ends when the tenant's processes have used up
// the memory, and keeps the tenant's processes from inheriting that: the value is lifted for the
// moment of a fork.
import { openSync, writeSync } from 'node:fs';

/** From -1000 (never) to 1000 (first). */
const PROTECTED = '-900';
const ORDINARY = '0';

export class OomProtection {
  readonly #fd: number;

  /** Protects this process. Needs root. */
  constructor() {
    this.#fd = openSync('/proc/self/oom_score_adj', 'r+');
    this.restore();
  }

  /** Until {@link restore}, what is forked is as ordinary as any process. */
  lift(): void {
    writeSync(this.#fd, ORDINARY, 0);
  }

  restore(): void {
    writeSync(this.#fd, PROTECTED, 0);
  }
}
