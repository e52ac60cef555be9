// Hands a pool VM over to a create: first the record, then the folder, then the size. After a crash
// in between, the VM's record or the pool's names it and the next daemon ends it; an unfinished
// create starts again. Must not choose the pool VM.
import type { GuestClient } from '../guest/client.ts';
import { crashPoint } from '../vm/crash-point.ts';
import { DriverError, type DriverCapabilities, type DriverState, type RunningVm, type VmSize } from '../vm/driver.ts';
import type { PoolVmParts, PoolVm } from './pool-vm.ts';

export interface TakeOrder {
  size: VmSize;
  /** The driver's folder of the VM: empty or absent; replaced by that of the pool VM. */
  folder: string;
  /** Durably records the new owner before anything moves. */
  saveState(machineId: string, state: DriverState): Promise<void>;
  signal: AbortSignal;
}

export interface TakenVm {
  machineId: string;
  /** Null for a VM in plain text. */
  diskKey: string | null;
  running: RunningVm;
  /** Open connection; an identity replaces its secret. */
  guest: GuestClient;
}

/** Rejects with the failure; the caller then ends the pool VM. */
export async function handOver(
  { driver, directory, size }: PoolVmParts,
  poolVm: PoolVm,
  order: TakeOrder,
): Promise<void> {
  order.signal.throwIfAborted();
  await order.saveState(poolVm.id, poolVm.driverState);
  crashPoint('pool:claim-recorded');
  await directory.move(poolVm.id, order.folder);
  crashPoint('pool:claim-moved');
  await directory.remove(poolVm.id);
  crashPoint('pool:claim-removed');
  if (isLarger(order.size, size)) {
    const vm = { id: poolVm.id, folder: order.folder, state: poolVm.driverState, signal: order.signal };
    const got = await driver.resize(vm, size, order.size);
    if (isLarger(order.size, got)) throw new DriverError(`its size is ${JSON.stringify(got)} after the hot-plug`);
  }
}

/** True if a VM of size `from` can become `to`: equal, or larger with a driver that hot-plugs. */
export function fits(from: VmSize, to: VmSize, { hotplug }: DriverCapabilities): boolean {
  return hotplug
    ? to.vcpu >= from.vcpu && to.memoryMib >= from.memoryMib && to.diskGib >= from.diskGib
    : to.vcpu === from.vcpu && to.memoryMib === from.memoryMib && to.diskGib === from.diskGib;
}

function isLarger(to: VmSize, than: VmSize): boolean {
  return to.vcpu > than.vcpu || to.memoryMib > than.memoryMib || to.diskGib > than.diskGib;
}
