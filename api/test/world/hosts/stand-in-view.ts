// A VM of the test host in its list.
import type { VmSpec, VmView } from '@berth/protocol/host.ts';

/** The VM as `GET /vms` shows it. */
export function viewOf(vm: VmView & { spec: VmSpec }): VmView {
  const { id, epoch, status, reason, deathCode, keeps, lastAliveUnixMs, spec, woke, egressDenied, modelVersion } = vm;
  return {
    id,
    epoch,
    status,
    spec,
    ...(status === 'dead' && reason !== undefined ? { reason } : {}),
    ...(status === 'dead' && deathCode !== undefined ? { deathCode } : {}),
    ...((status === 'dead' || status === 'asleep') && keeps !== undefined ? { keeps } : {}),
    ...(status === 'dead' && lastAliveUnixMs !== undefined ? { lastAliveUnixMs } : {}),
    ...(woke === undefined ? {} : { woke }),
    ...(status === 'running' && egressDenied !== undefined ? { egressDenied } : {}),
    ...(status === 'running' && modelVersion !== undefined ? { modelVersion } : {}),
    ...(spec.egress === undefined ? {} : { egressRevision: spec.egress.revision }),
  };
}
