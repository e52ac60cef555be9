// What using a sandbox may come to, whatever it is used for: errors that commands, file calls and
// connections have in common.
import type { ErrorCode } from '../route/errors.ts';

/**
 * Why a wake does not begin, whether it was asked for or a use of the sandbox begins it
 * (`wakeOnUse`).
 */
export const WAKE_ERRORS = [
  'wake_not_possible',
  'no_active_plan',
  'concurrent_sandbox_limit',
  'machine_hour_limit',
  'insufficient_capacity',
] as const satisfies readonly ErrorCode[];

/** Why a sandbox cannot be used now; those of a wake where its project's `wakeOnUse` is on. */
export const USE_ERRORS = [
  'sandbox_state_conflict',
  'sandbox_unreachable',
  'host_unavailable',
  ...WAKE_ERRORS,
] as const satisfies readonly ErrorCode[];
