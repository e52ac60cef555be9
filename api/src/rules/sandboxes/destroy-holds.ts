// What of its host a sandbox keeps reserved while it is being destroyed: what it had when that
// began. Ending it must not take room that was free. Pure.
import { SANDBOX_STATES, type SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { isDeathCode } from './machine-death.ts';

/** `machine`: vCPUs, memory and disk. `disk`: that alone. */
export type DestroyHolds = 'machine' | 'disk' | 'nothing';

/**
 * Refusals of a create (protocol/src/host.ts) with which a host says that nothing of the machine is
 * there.
 */
const NEVER_MADE: ReadonlySet<string> = new Set(['create_failed', 'insufficient_capacity']);

/**
 * What a destroy that begins now holds until it is over. Where something may run on the host all
 * the same, a machine.
 */
export function destroyHolds(before: {
  status: SandboxStatus;
  reasonCode: string | null;
  wakesFrom: 'snapshot' | 'disk' | null;
}): DestroyHolds {
  if (SANDBOX_STATES[before.status].holdsMachine || mayRun(before)) return 'machine';
  return before.wakesFrom === null ? 'nothing' : 'disk';
}

/** Of a sandbox that holds no machine by its status. */
function mayRun({ status, reasonCode }: { status: SandboxStatus; reasonCode: string | null }): boolean {
  // It has a reason after a wake that was given up, which may yet come late.
  if (status === 'stopped') return reasonCode !== null;
  // Its host told that the machine is dead or was never made; whatever else it failed with (a host
  // that does not answer, a lost record), nobody looked.
  return reasonCode === null || !(isDeathCode(reasonCode) || NEVER_MADE.has(reasonCode));
}
