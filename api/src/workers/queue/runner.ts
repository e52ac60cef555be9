// Claims durable steps and runs each until it is done. A step may be repeated from its start, also
// concurrently: host calls and commits are idempotent and fenced by the epoch.
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { claimSteps, deleteStep, releaseSteps, type ClaimedStep } from '../../store/steps/steps.ts';
import type { Database } from '../../store/database/schema.ts';
import { crashPoint } from '../steps/crash-point.ts';
import { pause, untilCommitted, worthLogging } from '../steps/step-context.ts';
import type { StepKind } from '../steps/step-kind.ts';

const CLAIM_BATCH = 100;
/**
 * Limit of concurrent steps per org and kind in a process; further steps wait in the queue. There
 * is no limit over all orgs: steps waiting for a host or mail server would hold up other orgs.
 */
const STEPS_PER_ORG = 100;
/** A destroy takes precedence over everything, so it never waits for another step. */
const UNLIMITED_KINDS: readonly StepKind[] = ['destroy'];
/** Time for running steps to finish when the process stops. */
const STOP_GRACE_MS = 2_000;

export type StepPrograms = Readonly<Record<StepKind, (input: never) => Promise<void>>>;

export interface RunnerOptions {
  db: Database;
  log: Logger;
  executorId: string;
  programs: StepPrograms;
  /** Aborts the waits of all steps. */
  stopping: AbortController;
  stepsPerOrg?: number;
}

interface RunningStep extends ClaimedStep {
  done: Promise<void>;
}

export class StepRunner {
  readonly #options: RunnerOptions;
  readonly #perOrg: number;
  readonly #running = new Map<string, RunningStep>();
  #claiming: Promise<void> | undefined;
  #rerun = false;
  #closed = false;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#perOrg = options.stepsPerOrg ?? STEPS_PER_ORG;
  }

  /** Claims and starts waiting steps. Never throws. Claims never overlap, and no call is missed. */
  wake(): void {
    this.#rerun = true;
    if (this.#claiming !== undefined || this.#closed) return;
    this.#claiming = this.#claimAll()
      // The next poll retries.
      .catch((error: unknown) => this.#options.log.warn({ err: error }, 'cannot claim durable steps yet'))
      .finally(() => {
        this.#claiming = undefined;
        if (this.#rerun) this.wake();
      });
  }

  /** Resolves when no claim is in flight. */
  async claimed(): Promise<void> {
    await this.#claiming;
  }

  /**
   * Claims no more steps, lets running steps finish briefly, and leaves the others to the next
   * process.
   */
  async stop(): Promise<void> {
    const { db, log, executorId, stopping } = this.#options;
    this.#closed = true;
    await this.#claiming;
    const allDone = Promise.all([...this.#running.values()].map(({ done }) => done));
    const graceOver = new AbortController();
    await Promise.race([allDone, delay(STOP_GRACE_MS, undefined, { signal: graceOver.signal }).catch(() => undefined)]);
    graceOver.abort();
    stopping.abort();
    await allDone;
    if (this.#running.size === 0) return;
    // Otherwise the next process has to wait for the lock of the Postgres session.
    await releaseSteps(db, executorId).catch((error: unknown) => log.warn({ err: error }, 'cannot release steps'));
  }

  async #claimAll(): Promise<void> {
    const { db, executorId, programs } = this.#options;
    while (this.#rerun && !this.#closed) {
      this.#rerun = false;
      const claimed = await claimSteps(db, {
        executorId,
        kinds: Object.keys(programs),
        running: [...this.#running.keys()],
        perOrg: this.#perOrg,
        unlimitedKinds: UNLIMITED_KINDS,
        limit: CLAIM_BATCH,
      });
      for (const step of claimed) this.#start(step);
      if (claimed.length === CLAIM_BATCH) this.#rerun = true;
    }
  }

  #start(step: ClaimedStep): void {
    const done = this.#run(step).then(
      () => {
        // A claim in flight still counts this step as running.
        const mayWait = this.#countLike(step) >= this.#perOrg || this.#claiming !== undefined;
        this.#running.delete(step.id);
        if (mayWait) this.wake();
      },
      (error: unknown) => {
        // A step that is stopped stays on record.
        if (!this.#options.stopping.signal.aborted) throw error;
      },
    );
    this.#running.set(step.id, { ...step, done });
  }

  async #run({ id, kind, input }: ClaimedStep): Promise<void> {
    const { db, log, programs, stopping } = this.#options;
    crashPoint(`${kind as StepKind}:claimed`);
    for (let attempt = 0; ; attempt += 1) {
      try {
        await programs[kind as StepKind](input as never);
        break;
      } catch (error) {
        stopping.signal.throwIfAborted();
        if (worthLogging(attempt)) log.error({ err: error, step: id, attempt }, 'a durable step failed: retrying');
      }
      await pause(attempt, stopping.signal);
    }
    await untilCommitted({ log, stopping: stopping.signal }, 'removing a step', () => deleteStep(db, id));
    crashPoint(`${kind as StepKind}:removed`);
  }

  #countLike({ orgId, kind }: ClaimedStep): number {
    return [...this.#running.values()].filter((step) => step.orgId === orgId && step.kind === kind).length;
  }
}
