// Host capacity that a sandbox reserves during its destroy: the capacity it held before. A destroy
// must not claim capacity that was free. Pure.
import { SANDBOX_STATES, type SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { isDeathCode } from './machine-death.ts';

/** `machine`: vCPUs, memory and disk. `disk`: the disk only. */
export type DestroyHolds = 'machine' | 'disk' | 'nothing';

/** Refusals of a create (protocol) by which a host confirms that no VM exists. */
export const NEVER_MADE: ReadonlySet<string> = new Set(['create_failed', 'insufficient_capacity']);

/**
 * Capacity held until a destroy that starts now completes. Reserves a whole VM if one may still run
 * on the host.
 */
export function destroyHolds(before: {
  status: SandboxStatus;
  reasonCode: string | null;
  wakesFrom: 'snapshot' | 'disk' | null;
}): DestroyHolds {
  if (SANDBOX_STATES[before.status].reservesCompute || mayRun(before)) return 'machine';
  return before.wakesFrom === null ? 'nothing' : 'disk';
}

/** For a sandbox whose status implies no VM. */
function mayRun({ status, reasonCode }: { status: SandboxStatus; reasonCode: string | null }): boolean {
  // A reason means an abandoned wake, which may still complete.
  if (status === 'stopped') return reasonCode !== null;
  // The host confirmed a dead or never created VM. After any other failure (unreachable host, lost
  // record) the VM may exist.
  return reasonCode === null || !(isDeathCode(reasonCode) || NEVER_MADE.has(reasonCode));
}
