// Metrics of a running VM from its guest and its host, at one moment. The guest may lie; billing
// uses the host's.
import { guestMetricsCall, type VmMetrics } from '@berth/protocol/calls/metrics.ts';
import type { GuestClient } from '../../guest/client.ts';
import type { LifecycleParts, OwnedVm } from '../owned/owned-vm.ts';

/** Rejects with `guest_unreachable` on a timeout or an invalid response of the guest. */
export async function metricsOf(
  { driver, directory }: LifecycleParts,
  vm: OwnedVm,
  guest: GuestClient,
  signal: AbortSignal,
): Promise<VmMetrics> {
  const sampledAtUnixMs = Date.now();
  const [seenInside, host] = await Promise.all([
    guest.call(guestMetricsCall, {}, { signal }),
    driver.figures(directory.driverFolder(vm.id), vm.record.driverState ?? {}),
  ]);
  return { sampledAtUnixMs, guest: seenInside, host };
}
