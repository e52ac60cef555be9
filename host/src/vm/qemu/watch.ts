// Watches VMs' processes until they end, also those of an earlier daemon. One look at the kernel's
// counter of out-of-memory kills serves all of them.
import { setTimeout as delay } from 'node:timers/promises';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { isSame } from '@berth/os/process-identity.ts';
import { oomKills } from './process/death.ts';

/**
 * How often a process is looked at: the kernel offers Node no event for the end of one that is no
 * child.
 */
const POLL_MS = 250;
/**
 * A process that the kernel ends for want of memory is counted first and gone later, by the time
 * that giving back its memory takes.
 */
const OOM_WINDOW_MS = 10_000;

interface Watched {
  /** In milliseconds since 1970. */
  lastAliveUnixMs: number;
  outOfMemory: boolean;
}

export class Watch {
  #kills: number | null = null;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | null = null;
  #roseAtMs = Number.NEGATIVE_INFINITY;

  /**
   * Resolves when the process is gone, or when the signal aborts. `ended` may tell of it sooner
   * than a look.
   */
  async untilGone(process: ProcessIdentity, ended: AbortSignal | null, signal: AbortSignal): Promise<Watched> {
    let lastAliveUnixMs = Date.now();
    const either = ended === null ? signal : AbortSignal.any([signal, ended]);
    while (!signal.aborted && (await isSame(process))) {
      lastAliveUnixMs = Date.now();
      await this.#look();
      // The only rejection of this timer is the abort, which is looked at above: a process whose
      // end was told is waited for in short steps.
      await delay(ended?.aborted === true ? 5 : POLL_MS, undefined, {
        signal: ended?.aborted === true ? signal : either,
      }).catch(() => undefined);
    }
    await this.#look(true);
    return { lastAliveUnixMs, outOfMemory: performance.now() - this.#roseAtMs < OOM_WINDOW_MS };
  }

  async #look(now = false): Promise<void> {
    if (!now && performance.now() - this.#lookedAtMs < POLL_MS / 2) return;

    this.#looking ??= this.#readCounter().finally(() => (this.#looking = null));
    await this.#looking;
  }

  async #readCounter(): Promise<void> {
    this.#lookedAtMs = performance.now();
    const kills = await oomKills();
    if (this.#kills !== null && kills > this.#kills) this.#roseAtMs = performance.now();

    this.#kills = kills;
  }
}
