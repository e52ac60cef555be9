// Keeps API, host daemon and Postgres running as a supervisor does, kills them on request, and
// records their downtimes in the fault log.
import { setTimeout as delay } from 'node:timers/promises';
import { PARTS, type PartName, type Parts } from '../../world/parts.ts';
import type { Report } from '../judging/report.ts';
import type { Fault, FaultLog } from '../judging/faults.ts';

/** Restart delays as under the supervisor: short, and longer for a part that keeps exiting. */
const FIRST_RETRY_MS = 250;
const LAST_RETRY_MS = 4_000;

export class PartSupervisor {
  readonly #parts: Parts;
  readonly #faults: FaultLog;
  readonly #report: Report;
  readonly #stopping = new AbortController();
  /** Downtime of each killed part, and the work to do before its restart. */
  readonly #downMs = new Map<PartName, number>();
  #gate: Promise<unknown> = Promise.resolve();
  readonly #down = new Map<PartName, Fault>();
  #supervising: Promise<unknown> = Promise.resolve();

  constructor(parts: Parts, faults: FaultLog, report: Report) {
    this.#parts = parts;
    this.#faults = faults;
    this.#report = report;
  }

  start(): void {
    this.#supervising = Promise.all(PARTS.map((name) => this.#supervise(name)));
  }

  /** Kills all the parts at once (`kill -9`); they restart after `downMs`. */
  async kill(names: readonly PartName[], downMs: number): Promise<void> {
    await Promise.all(
      names.map(async (name) => {
        if (!this.#parts.isRunning(name)) return;
        this.#downMs.set(name, downMs);
        this.#markDown(name);
        await this.#parts.kill(name);
        this.#report.counts.kills += 1;
      }),
    );
  }

  /** Kills everything (`kill -9`); restarts begin `downMs` after the work is done. */
  async killAllDuring(work: () => Promise<void>, downMs: number): Promise<void> {
    const done = Promise.withResolvers<void>();
    this.#gate = done.promise;
    try {
      await this.kill(PARTS, downMs);
      await work();
    } finally {
      done.resolve();
    }
  }

  /** Stops restarting parts; running parts continue. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#supervising;
  }

  async #supervise(name: PartName): Promise<void> {
    const { signal } = this.#stopping;
    const wanted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    let retryMs = FIRST_RETRY_MS;
    while (!signal.aborted) {
      if (!this.#parts.isRunning(name)) {
        await this.#gate;
        try {
          await this.#parts.run(name, signal);
        } catch (error) {
          if (signal.aborted) return;
          this.#report.note(`${name} did not start: ${firstLine(error)}`);
          await Promise.race([delay(retryMs), wanted]);
          retryMs = Math.min(LAST_RETRY_MS, retryMs * 2);
          continue;
        }
      }
      retryMs = FIRST_RETRY_MS;
      this.#markUp(name);
      const how = await Promise.race([this.#parts.ended(name), wanted]);
      if (signal.aborted) return;
      const downMs = this.#downMs.get(name);
      this.#downMs.delete(name);
      if (downMs === undefined) this.#exitedUnexpectedly(name, String(how));
      await Promise.race([delay(downMs ?? FIRST_RETRY_MS), wanted]);
    }
  }

  #exitedUnexpectedly(name: PartName, how: string): void {
    const now = Date.now();
    // A part exits by itself only because of a full disk or an unreachable database.
    const excused = this.#faults.excuses(['disk', 'database'], now - 1_000, now);
    this.#markDown(name);
    if (excused) this.#report.note(`${name} ended by itself (${how}) while disk or database were not there`);
    else this.#report.found('contradiction', `${name} ended by itself: ${how}\n${this.#parts.log.slice(-2_000)}`);
  }

  #markDown(name: PartName): void {
    if (!this.#down.has(name)) this.#down.set(name, this.#faults.begin(name));
  }

  #markUp(name: PartName): void {
    const fault = this.#down.get(name);
    this.#down.delete(name);
    if (fault !== undefined) this.#faults.end(fault);
  }
}

function firstLine(error: unknown): string {
  return ((error as Error).message.split('\n')[0] ?? '').slice(0, 200);
}
