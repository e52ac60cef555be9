// What a running VM's guest says of itself and what its host sees of it, at one moment. The guest
// may lie; what is billed is the host's.
import { guestMetrics } from '@berth/protocol/guest.ts';
import type { VmMetrics } from '@berth/protocol/host.ts';
import type { GuestClient } from '../../guest/client.ts';
import type { LifecycleParts, OwnedVm } from '../owned/owned-vm.ts';

/** An emulated guest that is busy takes its time. */
const GUEST_DEADLINE_MS = 10_000;

/** Rejects with `guest_unreachable` when the guest does not answer in its protocol and in time. */
export async function metricsOf(
  { driver, directory }: LifecycleParts,
  vm: OwnedVm,
  guest: GuestClient,
  signal: AbortSignal,
): Promise<VmMetrics> {
  const sampledAtUnixMs = Date.now();
  const [seenInside, host] = await Promise.all([
    guest.json({ method: 'GET', path: '/metrics', answer: guestMetrics, signal, deadlineMs: GUEST_DEADLINE_MS }),
    driver.figures(directory.driverFolder(vm.id), vm.record.driverState ?? {}),
  ]);
  return { sampledAtUnixMs, guest: seenInside, host };
}
