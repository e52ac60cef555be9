// What a running VM's guest says of itself and what its host sees of it, at one moment. The guest
// may lie; what is billed is the host's.
import { guestMetricsCall, type VmMetrics } from '@berth/protocol/calls/metrics.ts';
import type { GuestClient } from '../../guest/client.ts';
import type { LifecycleParts, OwnedVm } from '../owned/owned-vm.ts';

/** Rejects with `guest_unreachable` when the guest does not answer in its protocol and in time. */
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
