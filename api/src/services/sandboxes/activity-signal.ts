// Records signs of use, the only writer of `last_active_at` apart from transitions. Call it for
// every use of a sandbox, with a signal of the contract. Writes at most once every few seconds per
// sandbox.
import type { UseSignal } from '@berth/contract/sandboxes/sandboxes.ts';
import { touchAwake } from '../../store/sandboxes/activity-signals.ts';
import type { SandboxRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';

/** Newer recorded signs of use suppress a write. Far below the shortest idle time, a minute. */
export const RECORDED_WITHIN_MS = 5_000;
/** Interval at which continuing use is recorded. */
const TRACK_EVERY_MS = 20_000;

type SignalContext = Pick<ServiceContext, 'db' | 'log'>;

/**
 * Records a sign of use; call it before the use. Resolves with whether the sandbox was awake.
 * `true`: no auto-sleep within the next minute. `false`: it fell asleep since its row was read.
 */
export async function recordActivity(
  context: SignalContext,
  sandbox: Pick<SandboxRow, 'id' | 'last_active_at'>,
  signal: UseSignal,
): Promise<boolean> {
  // The row was just read, so most calls need no write. A replica clock off by most of a minute
  // could make this wrong; the worst result is a 409 for a call that meets a sandbox falling
  // asleep.
  if (Math.abs(Date.now() - sandbox.last_active_at.getTime()) < RECORDED_WITHIN_MS) return true;
  const awake = await touchAwake(context.db, sandbox.id, signal, RECORDED_WITHIN_MS);
  context.log.debug({ sandboxId: sandbox.id, signal, awake }, 'sandbox in use');
  return awake;
}

/**
 * Records continuing use repeatedly until `end` is called, and at its end. If the process dies, its
 * use ends with it.
 */
export function trackActivity(context: SignalContext, sandboxId: string, signal: UseSignal): { end(): void } {
  const record = (): void => {
    touchAwake(context.db, sandboxId, signal, RECORDED_WITHIN_MS).catch((error: unknown) =>
      // The next write makes up for it, unless the database is unavailable for most of an idle
      // time.
      context.log.warn({ err: error, sandboxId, signal }, 'could not record the use of a sandbox'),
    );
  };
  const beganAt = performance.now();
  const timer = setInterval(record, TRACK_EVERY_MS);
  timer.unref();
  return {
    end: () => {
      clearInterval(timer);
      if (performance.now() - beganAt > RECORDED_WITHIN_MS) record();
    },
  };
}
