// Keeps services running: starts them in order, restarts a crashed one with back-off, stops them in
// reverse order.
//
//   starting --answers--> running --ends--> pausing --> starting ...        stop(): any state --> stopped
//
// Decides when; each service knows how to start and stop.
import { setTimeout as delay } from 'node:timers/promises';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import type { RunningService, Service } from './service.ts';

interface SupervisorPauses {
  firstMs: number;
  mostMs: number;
  /** Uptime after which the restart back-off is reset. */
  settledMs: number;
}

const PAUSES: SupervisorPauses = { firstMs: 250, mostMs: 10_000, settledMs: 30_000 };

export type SupervisorEvent =
  | { kind: 'started'; service: string; process: ProcessIdentity; tookMs: number; restart: boolean }
  | { kind: 'ended'; service: string; reason: string; pauseMs: number }
  | { kind: 'failed'; service: string; reason: string; pauseMs: number }
  | { kind: 'stopped'; service: string; tookMs: number };

interface SupervisorOptions {
  services: readonly Service[];
  output(service: string): (chunk: Buffer) => void;
  onEvent(event: SupervisorEvent): void;
  pauses?: SupervisorPauses;
}

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #pauses: SupervisorPauses;
  readonly #stopping = new AbortController();
  readonly #running = new Map<string, RunningService>();
  readonly #supervisions: Promise<void>[] = [];
  /** First starts in progress: a stop must see what they started. */
  readonly #starting = new Set<Promise<unknown>>();

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#pauses = options.pauses ?? PAUSES;
  }

  /**
   * Starts every service once the one before responds. If a first start fails, stops those before
   * it and throws the failure.
   */
  async start(): Promise<void> {
    try {
      for (const service of this.#options.services) {
        const starting = this.#startOnce(service, false);
        this.#starting.add(starting);
        const running = await starting.finally(() => this.#starting.delete(starting));
        this.#supervisions.push(this.#supervise(service, running));
      }
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** Stops everything, last started first. Idempotent; also cancels a start in progress. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.allSettled(this.#starting);
    for (const service of this.#options.services.toReversed()) {
      const running = this.#running.get(service.name);
      if (running !== undefined) {
        const startedAt = performance.now();
        await running.stop();
        if (this.#running.delete(service.name))
          this.#options.onEvent({ kind: 'stopped', service: service.name, tookMs: performance.now() - startedAt });
      }
    }
    await Promise.all(this.#supervisions);
  }

  async #startOnce(service: Service, restart: boolean): Promise<RunningService> {
    const startedAt = performance.now();
    this.#stopping.signal.throwIfAborted();
    const running = await service.start(this.#options.output(service.name), this.#stopping.signal);
    if (this.#stopping.signal.aborted) {
      await running.stop();
      this.#stopping.signal.throwIfAborted();
    }
    this.#running.set(service.name, running);
    this.#options.onEvent({
      kind: 'started',
      service: service.name,
      process: running.process,
      tookMs: performance.now() - startedAt,
      restart,
    });
    return running;
  }

  /** Watches one service until the supervisor stops. Never rejects. */
  async #supervise(service: Service, first: RunningService): Promise<void> {
    const { firstMs, mostMs, settledMs } = this.#pauses;
    let running: RunningService | null = first;
    let startedAt = performance.now();
    let pauseMs = firstMs;
    while (!this.#stopping.signal.aborted) {
      if (running !== null) {
        const reason = await running.exited;
        if (this.#stopping.signal.aborted) return;

        this.#running.delete(service.name);
        pauseMs = performance.now() - startedAt >= settledMs ? firstMs : pauseMs;
        this.#options.onEvent({ kind: 'ended', service: service.name, reason, pauseMs });
      }
      await this.#pause(pauseMs);
      pauseMs = Math.min(pauseMs * 2, mostMs);
      try {
        running = await this.#startOnce(service, true);
        startedAt = performance.now();
      } catch (error) {
        running = null;
        if (!this.#stopping.signal.aborted)
          this.#options.onEvent({ kind: 'failed', service: service.name, reason: (error as Error).message, pauseMs });
      }
    }
  }

  async #pause(ms: number): Promise<void> {
    // The timer rejects only on stop, which every caller checks.
    await delay(ms, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
  }
}
