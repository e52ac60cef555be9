// How a machine of the pool becomes a VM's: on record first, then its folder, then its size. A
// daemon that is killed anywhere in between leaves a machine that the VM's record or the pool's
// names, and the next one ends it: a VM whose create did not end is made anew. Must not choose
// which machine.
import type { GuestClient } from '../guest/client.ts';
import { crashPoint } from '../vm/crash-point.ts';
import { DriverError, type DriverCapabilities, type DriverState, type RunningVm, type VmSize } from '../vm/driver.ts';
import type { MachineParts, PoolMachine } from './machine.ts';

export interface TakeOrder {
  size: VmSize;
  /** The VM's folder for the driver: empty or absent; the machine's own takes its place. */
  folder: string;
  /** Puts on record that the machine is the VM's, durably, before anything of it moves. */
  saveState(machineId: string, state: DriverState): Promise<void>;
  signal: AbortSignal;
}

export interface TakenMachine {
  /** The id that the driver knows it by. */
  machineId: string;
  running: RunningVm;
  /** Its connection is open, and carries a secret that an identity replaces. */
  guest: GuestClient;
}

/** Rejects with what failed; where the machine is then is for the caller to end. */
export async function handOver(
  { driver, directory, size }: MachineParts,
  machine: PoolMachine,
  order: TakeOrder,
): Promise<void> {
  order.signal.throwIfAborted();
  await order.saveState(machine.id, machine.driverState);
  crashPoint('pool:claim-recorded');
  await directory.move(machine.id, order.folder);
  crashPoint('pool:claim-moved');
  await directory.remove(machine.id);
  crashPoint('pool:claim-removed');
  if (isLarger(order.size, size)) {
    const vm = { id: machine.id, folder: order.folder, state: machine.driverState, signal: order.signal };
    const got = await driver.resize(vm, size, order.size);
    if (isLarger(order.size, got)) throw new DriverError(`it has ${JSON.stringify(got)} after it was made larger`);
  }
}

/**
 * Whether a machine of this size can become one of that: it grows where the driver can make it
 * grow.
 */
export function fits(from: VmSize, to: VmSize, { hotplug }: DriverCapabilities): boolean {
  return hotplug
    ? to.vcpu >= from.vcpu && to.memoryMib >= from.memoryMib && to.diskGib >= from.diskGib
    : to.vcpu === from.vcpu && to.memoryMib === from.memoryMib && to.diskGib === from.diskGib;
}

function isLarger(to: VmSize, than: VmSize): boolean {
  return to.vcpu > than.vcpu || to.memoryMib > than.memoryMib || to.diskGib > than.diskGib;
}
