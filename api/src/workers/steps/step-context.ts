// Context, pauses and commits of durable steps. A step of a stopping process throws the abort
// reason, stays on record, and runs again in the next process.
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { HostClients } from '../../hosts/clients.ts';
import type { LifecycleQueue, LifecycleStepKind } from '../../services/context/lifecycle-port.ts';
import type { SecretKey } from '../../services/context/secret-key.ts';
import type { Settings } from '../../services/context/settings.ts';
import type { ActivityActor } from '../../store/activity/activity.ts';
import type { Database, DatabaseTransaction } from '../../store/database/schema.ts';
import { crashPoint } from './crash-point.ts';

/** The service as an actor: carries out a request, or records what it found. */
export const SYSTEM: ActivityActor = { kind: 'system', id: null, userId: null };

export interface StepContext {
  db: Database;
  hosts: HostClients;
  log: Logger;
  /** Opens what is stored sealed: data keys, model keys, and credentials of repositories. */
  secretKey: SecretKey;
  settings: Pick<Settings, 'modelEndpoints'>;
  /** Enqueues the clone after a VM started. */
  lifecycle: Pick<LifecycleQueue, 'enqueue' | 'started'>;
  /** Time from its request that a sandbox waits for an unresponsive host. */
  hostTimeoutMs: number;
  /** Host silence after which the sandboxes awake on it count as lost. */
  hostSilenceMs: number;
  /** Aborts when this process stops its durable work. */
  stopping: AbortSignal;
}

const FIRST_WAIT_MS = 50;
/** Including jitter, below the 2 s in which an expired sandbox is deleted once its host is back. */
const LONGEST_WAIT_MS = 1_000;

/**
 * Pauses after a failed attempt: 50 ms, doubling up to 1 s, with a quarter of jitter. Ends early
 * when the process stops.
 */
export async function pause(attempt: number, stopping: AbortSignal): Promise<void> {
  const waitMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(attempt, 10)) * (0.75 + Math.random() * 0.5);
  try {
    await delay(waitMs, undefined, { signal: stopping });
  } catch (error) {
    if (!stopping.aborted) throw error;
  }
}

/** True for attempts 0, 1, 3, 7, 15, ...: limits the log lines of long retries. */
export function worthLogging(attempt: number): boolean {
  return (attempt & (attempt + 1)) === 0;
}

/** Retries an idempotent transaction until it commits. Throws when the process stops. */
export async function untilCommitted<T>(
  { log, stopping }: Pick<StepContext, 'log' | 'stopping'>,
  what: string,
  transaction: () => Promise<T>,
): Promise<T> {
  for (let attempt = 0; ; attempt += 1) {
    stopping.throwIfAborted();
    try {
      return await transaction();
    } catch (error) {
      if (!stopping.aborted && worthLogging(attempt)) log.warn({ err: error, attempt }, `${what}: retrying`);
    }
    await pause(attempt, stopping);
  }
}

/** Commits the outcome of a lifecycle step. */
export async function settleStep<T>(
  context: StepContext,
  kind: LifecycleStepKind,
  write: (trx: DatabaseTransaction) => Promise<T>,
): Promise<T> {
  crashPoint(`${kind}:decided`);
  const written = await untilCommitted(context, `settling a ${kind} step`, () =>
    context.db.transaction().execute(async (trx) => {
      const result = await write(trx);
      crashPoint(`${kind}:written`);
      return result;
    }),
  );
  crashPoint(`${kind}:settled`);
  return written;
}
