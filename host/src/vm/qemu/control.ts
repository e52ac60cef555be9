// The control connection to one running QEMU, kept for what it reports by itself: why it ends, and that the machine's disk has no room.
//
//   running --a write finds no room--> standing still --every 2 s--> running (stops again while there is no room)
import { z } from 'zod';
import type { QmpCall, QmpEvent, QmpSession } from './qmp.ts';

/** How often a VM that QEMU stopped for want of room on the machine's disk tries its write again. */
const NO_ROOM_RETRY_MS = 2_000;
/** How often that is said, however often it is tried. */
const NO_ROOM_SAID_EVERY_MS = 60_000;
const GO_ON_DEADLINE_MS = 10_000;

const runState = z.object({ status: z.string() });

/** A map: the names come from a QEMU that may be in foreign hands. */
const SHUTDOWN_REASONS = new Map([
  ['guest-shutdown', 'the guest shut itself down'],
  ['guest-reset', 'the guest rebooted itself, which ends the machine'],
  ['guest-panic', "the guest's kernel panicked"],
  ['host-signal', 'QEMU was told to end by a signal'],
  ['host-error', 'QEMU ended because of an error of its own'],
]);

export class Control {
  readonly #warn: (message: string, data?: object) => void;
  #qmp: QmpSession | null = null;
  #ended: AbortSignal | null = null;
  #shutdownReason: string | null = null;
  #retry: NodeJS.Timeout | null = null;
  #saidAtMs = Number.NEGATIVE_INFINITY;

  constructor(warn: (message: string, data?: object) => void) {
    this.#warn = warn;
  }

  /** Takes an event of the session, be it before {@link keep}. */
  note({ name, data }: QmpEvent): void {
    if (name === 'SHUTDOWN' && typeof data['reason'] === 'string') {
      const reason = data['reason'].slice(0, 64);
      this.#shutdownReason = SHUTDOWN_REASONS.get(reason) ?? `QEMU ended: ${reason}`;
    } else if (name === 'BLOCK_IO_ERROR' && data['action'] === 'stop') {
      this.#goOnLater();
    }
  }

  /** Keeps the session. `ended` aborts with QEMU's last messages; only for one that this daemon started. */
  keep(qmp: QmpSession, ended: AbortSignal | null): void {
    qmp.unref();
    this.#qmp = qmp;
    this.#ended = ended;
  }

  /** Takes over a QEMU of an earlier daemon: it may stand still since before. */
  async resume(call: QmpCall): Promise<void> {
    if ((await this.#qmp?.command('query-status', undefined, runState, call))?.status === 'io-error') {
      this.#goOnLater();
    }
  }

  /** Why QEMU ended, as far as it said; null for nothing. */
  reason(): string | null {
    const last: unknown = this.#ended?.aborted === true ? this.#ended.reason : null;
    return this.#shutdownReason ?? (last instanceof Error ? last.message : null);
  }

  /** Ends the session; QEMU goes on. */
  close(): void {
    clearTimeout(this.#retry ?? undefined);
    this.#qmp?.close();
  }

  /** QEMU keeps the write that found no room, and repeats it when the vCPUs go on; without room it stops them again and says so. */
  #goOnLater(): void {
    if (this.#retry !== null) {
      return;
    }
    if (performance.now() - this.#saidAtMs >= NO_ROOM_SAID_EVERY_MS) {
      this.#saidAtMs = performance.now();
      this.#warn('there is no room on the disk for what a VM writes: it stands still until there is');
    }
    this.#retry = setTimeout(() => {
      this.#retry = null;
      const call = { signal: AbortSignal.timeout(GO_ON_DEADLINE_MS) };
      this.#qmp?.command('cont', undefined, z.unknown(), call).catch((error: Error) => {
        this.#warn('a VM that stood still could not be told to go on', { error: error.message });
      });
    }, NO_ROOM_RETRY_MS);
    this.#retry.unref();
  }
}
