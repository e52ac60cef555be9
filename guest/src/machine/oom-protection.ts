// Protects the daemon from the kernel's OOM killer when the tenant's processes use up the memory.
// The protection is lifted during a fork, so that the tenant's processes do not inherit it.
import { openSync, writeSync } from 'node:fs';

/** Range: -1000 (never killed) to 1000 (killed first). */
const PROTECTED = '-900';
const ORDINARY = '0';

export class OomProtection {
  readonly #fd: number;

  /** Protects this process. Needs root. */
  constructor() {
    this.#fd = openSync('/proc/self/oom_score_adj', 'r+');
    this.restore();
  }

  /** Until {@link restore}, forked processes get no protection. */
  remove(): void {
    writeSync(this.#fd, ORDINARY, 0);
  }

  restore(): void {
    writeSync(this.#fd, PROTECTED, 0);
  }
}
