// The control connection to one running QEMU, kept open for events: why the VM ends, and that the
// host's disk is full. Reopened when it breaks.
//
//   running --write finds no space--> paused --every 2 s--> running (pauses again while full)
//   running --guest ends or panics--> paused --reason was read--> process exited
//   paused by an earlier daemon --adopted--> running
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { DriverError, type ConsoleOutput } from '../../driver.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { boundedMessageOf } from '../../host-error.ts';
import { endProcess, isSame } from '@berth/os/process-identity.ts';
import { VM_FILES } from '../machine/argv.ts';
import { Console, panicIn } from './console.ts';
import type { GuestEnd, SeenEnd } from './death.ts';
import { QemuEnded } from './launch.ts';
import { openQmp, type QmpCall, type QmpEvent, type QmpSession } from '../machine/qmp.ts';

/** Interval between write retries of a VM that QEMU paused for lack of space on the host's disk. */
const NO_SPACE_RETRY_MS = 2_000;
/** Interval of the log message about it. */
const NO_SPACE_WARN_EVERY_MS = 60_000;
const CALL_DEADLINE_MS = 10_000;
const EXIT_REPORT_MS = 1_000;
/** First delay before reopening a broken connection; doubles each time. */
const FIRST_REOPEN_MS = 1_000;
const LONGEST_REOPEN_MS = 60_000;

const runState = z.object({ status: z.string() });

export class Control {
  readonly #process: ProcessIdentity;
  readonly #warn: (message: string, data?: object) => void;
  readonly #closed = new AbortController();
  /** Aborts with QEMU's last messages when it exits; null for a QEMU of an earlier daemon. */
  readonly ended: AbortSignal | null;
  #qmp: QmpSession | null = null;
  #opening: Promise<QmpSession> | null = null;
  #guestEnd: GuestEnd | null = null;
  #ending: Promise<void> | null = null;
  #retry: NodeJS.Timeout | null = null;
  #warnedAtMs = Number.NEGATIVE_INFINITY;
  #pauseHolds = 0;
  readonly #console = new Console();
  #reading: Promise<void> | null = null;

  constructor(process: ProcessIdentity, ended: AbortSignal | null, warn: (message: string, data?: object) => void) {
    this.#process = process;
    this.ended = ended;
    this.#warn = warn;
  }

  /** Handles an event of the connection, even before {@link attach}. */
  note({ name, data }: QmpEvent): void {
    if (name === 'SHUTDOWN' && typeof data['reason'] === 'string') {
      this.#guestEnd ??= { shutdownReason: data['reason'].slice(0, 64), panic: null };
      // A QEMU ended by a signal exits by itself.
      if (data['reason'].startsWith('guest-')) this.#endSoon();
    } else if (name === 'BLOCK_IO_ERROR' && data['action'] === 'stop') {
      this.#resumeLater();
    }
  }

  /** Keeps a connection that was opened with {@link note} as its listener. */
  attach(qmp: QmpSession): void {
    qmp.unref();
    this.#qmp = qmp;
    void qmp.closed.then((reason) => this.#onBroken(qmp, reason));
    if (this.#guestEnd?.shutdownReason.startsWith('guest-') === true) this.#endSoon();
  }

  /** The connection, reopened if necessary. Rejects with QmpError or the signal's reason. */
  async session(signal: AbortSignal): Promise<QmpSession> {
    if (this.#qmp !== null) return this.#qmp;

    this.#opening ??= this.#open(AbortSignal.any([this.#closed.signal, AbortSignal.timeout(CALL_DEADLINE_MS)])).finally(
      () => (this.#opening = null),
    );
    const opened = await this.#opening;
    signal.throwIfAborted();
    return opened;
  }

  /** While `work` runs, nothing else resumes the VM. */
  async withoutResume<T>(work: () => Promise<T>): Promise<T> {
    this.#pauseHolds += 1;
    try {
      return await work();
    } finally {
      this.#pauseHolds -= 1;
    }
  }

  /**
   * Takes over a QEMU of an earlier daemon, which may be paused. Rejects with {@link DriverError}
   * for a QEMU that was never resumed.
   */
  async resume(call: QmpCall): Promise<void> {
    const qmp = await this.session(call.signal);
    const { status } = await qmp.command('query-status', undefined, runState, call);
    switch (status) {
      case 'running':
      // Suspended by its guest, which wakes by its own means.
      case 'suspended':
        return;
      case 'io-error':
        this.#resumeLater();
        return;
      case 'paused':
        await qmp.command('cont', undefined, z.unknown(), call);
        return;
      case 'shutdown':
      case 'guest-panicked':
      case 'internal-error':
        // The event is gone; the console may still show a panic.
        this.#guestEnd ??= { shutdownReason: shutdownReasonOf(status), panic: null };
        this.#endSoon();
        return;
      default:
        throw new DriverError(`the VM was left half-created: its QEMU is ${status.slice(0, 32)}`);
    }
  }

  /** Runs {@link resume} in the background as soon as QEMU responds. */
  resumeLater(reason: string): void {
    void this.#reopen(reason);
  }

  /**
   * Observations about an exited process: how the guest ended, as reported by QEMU, and how QEMU
   * exited.
   */
  async exitReport(): Promise<Pick<SeenEnd, 'guest' | 'exit'>> {
    await this.#ending;
    const { ended } = this;
    if (ended !== null && !ended.aborted) {
      // bwrap reports the exit a moment later. The only possible rejection is the awaited abort.
      await delay(EXIT_REPORT_MS, undefined, { signal: ended, ref: false }).catch(() => undefined);
    }
    const words: unknown = ended?.reason;
    return {
      guest: this.#guestEnd,
      exit: words instanceof QemuEnded ? { code: words.exitCode, message: words.message } : null,
    };
  }

  /**
   * Console output since the start of QEMU; after an exit, as far as it was read before, or null.
   * Concurrent calls share one command. Rejects if QEMU does not respond.
   */
  async readConsole(signal: AbortSignal): Promise<ConsoleOutput | null> {
    await this.#ending;
    if (await isSame(this.#process)) {
      this.#reading ??= this.#takeConsole(signal).finally(() => (this.#reading = null));
      await this.#reading;
    }
    return this.#console.content;
  }

  /** Closes the connection; QEMU keeps running. */
  close(): void {
    this.#closed.abort(new DriverError('the control of the VM was closed'));
    clearTimeout(this.#retry ?? undefined);
    this.#qmp?.close();
    this.#qmp = null;
  }

  async #takeConsole(signal: AbortSignal): Promise<void> {
    await this.#console.take(await this.session(signal), signal);
  }

  /** Via the process's own root: the folder may have been renamed. */
  async #open(signal: AbortSignal): Promise<QmpSession> {
    if (!(await isSame(this.#process))) throw new DriverError(`the QEMU process ${this.#process.pid} has exited`);

    const path = `/proc/${this.#process.pid}/root/vm/${VM_FILES.control}`;
    const qmp = await openQmp(path, (event) => this.note(event), { signal, deadlineMs: CALL_DEADLINE_MS });
    this.attach(qmp);
    return qmp;
  }

  #onBroken(qmp: QmpSession, reason: string): void {
    if (this.#qmp !== qmp || this.#closed.signal.aborted) return;

    this.#qmp = null;
    void this.#reopen(reason);
  }

  async #reopen(reason: string): Promise<void> {
    const { signal } = this.#closed;
    for (let pauseMs = FIRST_REOPEN_MS; !signal.aborted; pauseMs = Math.min(2 * pauseMs, LONGEST_REOPEN_MS)) {
      // The only possible rejection is the abort, which the loop's condition checks.
      await delay(pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
      if (signal.aborted || this.#ending !== null || !(await isSame(this.#process))) return;

      if (this.#pauseHolds > 0) {
        // Paused on purpose (capture). The holder reconnects if needed; resume afterwards.
        pauseMs = FIRST_REOPEN_MS / 2;
        continue;
      }
      try {
        this.#warn('the control connection to a VM was lost; reconnecting', { reason });
        await this.resume({ signal: AbortSignal.any([signal, AbortSignal.timeout(CALL_DEADLINE_MS)]) });
        return;
      } catch (error) {
        reason = boundedMessageOf(error);
      }
    }
  }

  /** QEMU pauses at the guest's shutdown (`shutdown=pause`), so that the console can be read. */
  #endSoon(): void {
    if (this.#qmp === null) return;

    this.#ending ??= this.#end(this.#qmp).catch((error: unknown) => {
      this.#warn('a VM that exited by itself could not be removed', { error: boundedMessageOf(error) });
    });
  }

  async #end(qmp: QmpSession): Promise<void> {
    const signal = AbortSignal.timeout(CALL_DEADLINE_MS);
    try {
      await this.#console.take(qmp, signal);
      const panic = panicIn(this.#console.content?.text ?? '');
      if (panic !== null && this.#guestEnd !== null) this.#guestEnd.panic = panic;
    } catch (error) {
      // A QEMU that exited by a signal no longer responds.
      if (await isSame(this.#process))
        this.#warn('the console of an exited VM could not be read', { error: boundedMessageOf(error) });
    }
    await endProcess(this.#process);
  }

  /**
   * QEMU keeps the failed write and repeats it on resume. Without space it pauses again and reports
   * that.
   */
  #resumeLater(): void {
    if (this.#retry !== null) return;

    if (performance.now() - this.#warnedAtMs >= NO_SPACE_WARN_EVERY_MS) {
      this.#warnedAtMs = performance.now();
      this.#warn("the host's disk is full: a VM is paused until its writes fit");
    }
    this.#retry = setTimeout(() => {
      this.#retry = null;
      if (this.#pauseHolds > 0) {
        this.#resumeLater();
        return;
      }
      const call = { signal: AbortSignal.any([this.#closed.signal, AbortSignal.timeout(CALL_DEADLINE_MS)]) };
      this.session(call.signal)
        .then((qmp) => qmp.command('cont', undefined, z.unknown(), call))
        .catch((error: unknown) => this.#warn('a paused VM could not be resumed', { error: boundedMessageOf(error) }));
    }, NO_SPACE_RETRY_MS);
    this.#retry.unref();
  }
}

function shutdownReasonOf(status: 'shutdown' | 'guest-panicked' | 'internal-error'): string {
  return { shutdown: 'guest-shutdown', 'guest-panicked': 'guest-panic', 'internal-error': 'host-error' }[status];
}
