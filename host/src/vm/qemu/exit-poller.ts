// Watches VMs' processes until they exit, also those of an earlier daemon, sharing a poll of the
// kernel's counter of out-of-memory kills.
import { setTimeout as delay } from 'node:timers/promises';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { isSame } from '@berth/os/process-identity.ts';
import { oomKills } from './process/death.ts';

/**
 * Poll interval: the kernel has no event usable from Node for the exit of a process that is not a
 * child.
 */
const POLL_MS = 250;
/**
 * The kernel counts an out-of-memory kill first; the process exits later, after its memory is
 * freed.
 */
const OOM_WINDOW_MS = 10_000;

interface Watched {
  /** In milliseconds since 1970. */
  lastAliveUnixMs: number;
  /** The kernel killed a process for lack of memory during or shortly before the exit. */
  oomKill: boolean;
}

export class ExitPoller {
  #kills: number | null = null;
  #polledAtMs = Number.NEGATIVE_INFINITY;
  #increasedAtMs = Number.NEGATIVE_INFINITY;

  /**
   * Resolves when the process is gone or the signal aborts. `ended` may report the exit earlier
   * than a poll.
   */
  async untilGone(process: ProcessIdentity, ended: AbortSignal | null, signal: AbortSignal): Promise<Watched> {
    let lastAliveUnixMs = Date.now();
    const either = ended === null ? signal : AbortSignal.any([signal, ended]);
    while (!signal.aborted && (await isSame(process))) {
      lastAliveUnixMs = Date.now();
      this.#poll();
      // The timer rejects only on abort, which the loop checks. Once the exit is reported, poll in
      // short steps.
      await delay(ended?.aborted === true ? 5 : POLL_MS, undefined, {
        signal: ended?.aborted === true ? signal : either,
      }).catch(() => undefined);
    }
    this.#poll(true);
    return { lastAliveUnixMs, oomKill: performance.now() - this.#increasedAtMs < OOM_WINDOW_MS };
  }

  #poll(now = false): void {
    if (!now && performance.now() - this.#polledAtMs < POLL_MS / 2) return;

    this.#polledAtMs = performance.now();
    const kills = oomKills();
    if (this.#kills !== null && kills > this.#kills) this.#increasedAtMs = performance.now();

    this.#kills = kills;
  }
}
