// Notes that sandboxes are used: the one way a sign of use gets into `last_active_at`. Whoever lets
// somebody use a sandbox calls this, by a name of the registry in rules/idleness.ts. Costs a write
// at most every few seconds a sandbox, however many calls there are.
import type { UseSignal } from '../../rules/sandboxes/idleness.ts';
import { touchAwake } from '../../store/sandboxes/activity-signals.ts';
import type { SandboxRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';

/**
 * A sign of use this soon after the one on record is not worth a write. Far below the shortest idle
 * time, a minute.
 */
export const NOTED_WITHIN_MS = 5_000;
/** How often use that lasts is noted again. */
const HELD_EVERY_MS = 20_000;

type SignalContext = Pick<ServiceContext, 'db' | 'log'>;

/**
 * Notes one sign of use before it happens. Resolves with whether the sandbox was awake: after
 * `true` it is not put to sleep for being idle within the next minute; after `false` it has fallen
 * asleep since its row was read.
 */
export async function noteActivity(
  context: SignalContext,
  sandbox: Pick<SandboxRow, 'id' | 'last_active_at'>,
  signal: UseSignal,
): Promise<boolean> {
  // The row was read for this very call, so this says of most calls that nothing is to be written.
  // A clock that differs from the database's by most of a minute could make it wrong; the worst
  // that comes of it is a 409 for a call that meets a sandbox falling asleep.
  if (Math.abs(Date.now() - sandbox.last_active_at.getTime()) < NOTED_WITHIN_MS) return true;
  const awake = await touchAwake(context.db, sandbox.id, NOTED_WITHIN_MS);
  context.log.debug({ sandboxId: sandbox.id, signal, awake }, 'a sign of use');
  return awake;
}

/**
 * Use that lasts: noted again and again until `end` is called, and then once more. A process that
 * dies holds nothing any more, as its use ends with it.
 */
export function holdActivity(context: SignalContext, sandboxId: string, signal: UseSignal): { end(): void } {
  const note = (): void => {
    touchAwake(context.db, sandboxId, NOTED_WITHIN_MS).catch((error: unknown) =>
      // The next one will, unless the database is away for most of an idle time.
      context.log.warn({ err: error, sandboxId, signal }, 'could not note that a sandbox is in use'),
    );
  };
  const beganAt = performance.now();
  const timer = setInterval(note, HELD_EVERY_MS);
  timer.unref();
  return {
    end: () => {
      clearInterval(timer);
      if (performance.now() - beganAt > NOTED_WITHIN_MS) note();
    },
  };
}
