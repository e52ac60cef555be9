// Errors shared by commands, file calls and connections.
import type { ErrorCode } from '../route/errors.ts';

/** Errors of a wake, whether requested or started by use of the sandbox (`wakeOnUse`). */
export const WAKE_ERRORS = [
  'wake_not_possible',
  'no_active_plan',
  'concurrent_sandbox_limit',
  'machine_hour_limit',
  'insufficient_capacity',
] as const satisfies readonly ErrorCode[];

/** Errors of using a sandbox; those of a wake only if its project has `wakeOnUse`. */
export const USE_ERRORS = [
  'sandbox_state_conflict',
  'sandbox_unreachable',
  'host_unavailable',
  ...WAKE_ERRORS,
] as const satisfies readonly ErrorCode[];
