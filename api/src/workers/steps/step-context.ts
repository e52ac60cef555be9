// What every durable step works with, and how it waits. A step never ends because this process
// does: it is parked, stays on record as running, and is taken over by whoever runs next.
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { HostClients } from '../../hosts/clients.ts';
import type { LifecycleQueue } from '../../services/context/lifecycle-port.ts';
import type { ActivityActor } from '../../store/activity/activity.ts';
import type { Database } from '../../store/database/schema.ts';

/** The service itself, carrying out what somebody asked for or writing what it found. */
export const SYSTEM: ActivityActor = { kind: 'system', id: null, userId: null };

export interface StepContext {
  db: Database;
  hosts: HostClients;
  log: Logger;
  /** For the clone that begins when a machine answers. */
  lifecycle: Pick<LifecycleQueue, 'enqueueClone' | 'cloneStarted'>;
  /** How long after its request a sandbox waits for a host that does not answer. */
  hostPatienceMs: number;
  /** How long a host may be silent before the sandboxes that are awake on it count as lost. */
  hostSilenceMs: number;
  /** Aborts when this process stops doing durable work. */
  stopping: AbortSignal;
}

/**
 * Never resolves and keeps nothing alive. To settle a step at shutdown would record that as its
 * outcome.
 */
export function parked(): Promise<never> {
  return new Promise(() => undefined);
}

const FIRST_WAIT_MS = 50;
/** With its jitter below the 2 s in which an expired sandbox is gone once its host is back. */
const LONGEST_WAIT_MS = 1_000;

/**
 * Waits before attempt number `attempt` + 1: 50 ms, doubling up to 1 s, with a quarter of jitter.
 * Ends early when the process stops.
 */
export async function pause(attempt: number, stopping: AbortSignal): Promise<void> {
  const waitMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(attempt, 10)) * (0.75 + Math.random() * 0.5);
  try {
    await delay(waitMs, undefined, { signal: stopping });
  } catch (error) {
    if (!stopping.aborted) throw error;
  }
}

/**
 * True for attempts 0, 1, 3, 7, 15 ...: enough for the log of something that is tried for hours.
 */
export function worthLogging(attempt: number): boolean {
  return (attempt & (attempt + 1)) === 0;
}

/** Repeats an idempotent transaction until the database takes it. */
export async function untilCommitted<T>(context: StepContext, what: string, transaction: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt += 1) {
    if (context.stopping.aborted) return await parked();
    try {
      return await transaction();
    } catch (error) {
      if (!context.stopping.aborted && worthLogging(attempt))
        context.log.warn({ err: error, attempt }, `${what}: trying again`);
    }
    await pause(attempt, context.stopping);
  }
}
