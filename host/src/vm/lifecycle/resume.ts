// Restores a VM from its snapshot, or boots its disk if there is no usable snapshot. Each step is
// on disk before the next begins. wake.ts continues once the VM runs. Must not call its guest.
import type { EgressPolicy } from '@berth/protocol/egress.ts';
import type { Amounts } from '../admission.ts';
import { boundedMessageOf } from '../host-error.ts';
import { makeGuestSecret } from '../../guest/identity.ts';
import { crashPoint } from '../crash-point.ts';
import type { VmRecord } from '../directory/record.ts';
import { NeverContinued, SnapshotUnusable, type RunningVm, type WokenVm } from '../driver.ts';
import { keepBootConsole } from './consoles.ts';
import { release } from './exit.ts';
import { capture, isUnfinished } from './sleep.ts';
import { egressOf, sizeOf, type LifecycleParts, type OwnedVm } from '../owned/owned-vm.ts';

export interface WakeOrder {
  epoch: number;
  size: Amounts;
  egress: EgressPolicy;
  /** Null from a control plane of an earlier release. */
  dataKey: string | null;
}

/** A boot of the disk failed or was aborted. */
export class BootFailed extends Error {
  constructor(cause: unknown) {
    super(boundedMessageOf(cause), { cause });
  }
}

/** Resolves when the VM runs, as recorded. `abort` is the verb's signal, without its deadline. */
export async function resumeVm(
  parts: LifecycleParts,
  vm: OwnedVm,
  { epoch, size, egress, dataKey }: WakeOrder,
  signal: AbortSignal,
  abort: AbortSignal,
): Promise<RunningVm> {
  const { directory, driver, log } = parts;
  signal.throwIfAborted();
  crashPoint('wake:accepted');
  await directory.holdDataKey(vm.id, dataKey);
  crashPoint('wake:key-held');
  await clearLastAttempt(parts, vm, signal);
  // Before anything runs: the guest must never know a secret that the disk does not hold.
  await directory.writeNextSecret(vm.id, makeGuestSecret());
  const spec = egress === egressOf(vm.record) ? vm.record.spec : { ...vm.record.spec, egress };
  const waking: VmRecord = { ...vm.record, spec, status: 'waking', epoch, continued: false, sizeAsked: sizeOf(size) };
  await directory.write(waking);
  vm.record = waking;
  // The driver enforces the recorded policy before the guest runs.
  vm.formerEgress = null;
  crashPoint('wake:recorded');
  signal.throwIfAborted();
  if (vm.record.snapshot) {
    try {
      return await fromSnapshot(parts, vm, signal, abort);
    } catch (error) {
      if (vm.record.continued || vm.ending !== null) throw error;

      const isReleased = await releaseAttempt(parts, vm);
      // A boot would overwrite the record of a VM that was not ended; kept, the next wake ends it
      // first.
      if (!isReleased || !(error instanceof SnapshotUnusable) || signal.aborted) throw error;

      log.warn({ vmId: vm.id, epoch, err: error }, 'unusable snapshot: booting the disk of its VM');
      // The disk diverges from the snapshot with the boot's first write.
      const givenUp: VmRecord = {
        ...vm.record,
        snapshot: false,
        reason: `its snapshot is unusable: ${boundedMessageOf(error)}`.slice(0, 4_096),
      };
      await directory.write(givenUp);
      vm.record = givenUp;
      crashPoint('boot:given-up-snapshot');
    }
  }
  return fromDisk(parts, vm, driver, signal);
}

async function fromSnapshot(
  parts: LifecycleParts,
  vm: OwnedVm,
  signal: AbortSignal,
  abort: AbortSignal,
): Promise<WokenVm> {
  const { driver, directory } = parts;
  let unspent = vm.record;
  let woken: WokenVm;
  try {
    woken = await driver.wake({
      ...vm.existing(directory.driverFolder(vm.id), signal),
      egress: egressOf(vm.record),
      snapshotFolder: directory.snapshotFolder(vm.id),
      readDiskKey: () => directory.readDiskKey(vm.id),
      saveState: async (driverState) => {
        const { sleptState, driverState: former } = vm.record;
        vm.record = { ...vm.record, sleptState: sleptState ?? former, driverState, freed: false };
        await directory.write(vm.record);
        crashPoint('wake:driver-state-saved');
      },
      beforeContinue: async () => {
        crashPoint('wake:restored');
        signal.throwIfAborted();
        const woke = { from: 'snapshot', reason: null } as const;
        unspent = vm.record;
        const continued: VmRecord = { ...vm.record, continued: true, snapshot: false, sleptState: null, woke };
        await directory.write(continued);
        vm.record = continued;
        crashPoint('wake:continued-recorded');
      },
    });
  } catch (error) {
    // When the daemon closes, the next one resumes the VM.
    if (error instanceof NeverContinued && vm.record.continued && !abort.aborted) await markUnspent(parts, vm, unspent);

    throw error;
  }
  vm.record = { ...vm.record, spec: { ...vm.record.spec, ...sizeOf(woken.size) } };
  crashPoint('wake:continued');
  return woken;
}

/**
 * Marks the snapshot as unspent. Written before the VM is ended: after a crash in between, the next
 * daemon finds a wake to undo, not a VM that ran and is gone. Never rejects: a failed write is
 * repeated when the wake is given up.
 */
async function markUnspent({ directory, log }: LifecycleParts, vm: OwnedVm, unspent: VmRecord): Promise<void> {
  vm.record = unspent;
  try {
    await directory.write(unspent);
  } catch (error) {
    log.error(
      { vmId: vm.id, err: error },
      `the record of a VM that never ran was not written: ${boundedMessageOf(error)}`,
    );
  }
}

async function fromDisk(
  parts: LifecycleParts,
  vm: OwnedVm,
  driver: LifecycleParts['driver'],
  signal: AbortSignal,
): Promise<WokenVm> {
  const { directory } = parts;
  const why = vm.record.reason ?? 'it has no snapshot';
  let woken: WokenVm;
  try {
    woken = await driver.boot({
      ...vm.existing(directory.driverFolder(vm.id), signal),
      egress: egressOf(vm.record),
      readDiskKey: () => directory.readDiskKey(vm.id),
      saveState: async (driverState) => {
        vm.record = { ...vm.record, driverState, freed: false };
        await directory.write(vm.record);
        crashPoint('boot:driver-state-saved');
      },
    });
  } catch (error) {
    await keepBootConsole(parts, vm, error);
    throw new BootFailed(error);
  }
  crashPoint('boot:booted');
  const spec = { ...vm.record.spec, ...sizeOf(woken.size) };
  vm.record = { ...vm.record, continued: true, spec, woke: { from: 'disk', reason: why } };
  await directory.write(vm.record);
  crashPoint('boot:continued-recorded');
  return woken;
}

/**
 * Frees the attempt's resources and restores the state that the next attempt needs. False if
 * freeing failed; the record then keeps them. Never rejects.
 */
export async function releaseAttempt(parts: LifecycleParts, vm: OwnedVm): Promise<boolean> {
  try {
    await release(parts, vm);
    vm.record = { ...vm.record, driverState: vm.record.sleptState ?? vm.record.driverState, sleptState: null };
    return true;
  } catch (error) {
    parts.log.error(
      { vmId: vm.id, err: error },
      `a VM that did not wake was not cleaned up: ${boundedMessageOf(error)}`,
    );
    return false;
  }
}

/** Frees what the sleep or an earlier attempt could not: two VMs must never run on one disk. */
async function clearLastAttempt(parts: LifecycleParts, vm: OwnedVm, signal: AbortSignal): Promise<void> {
  const { status, freed, sleptState } = vm.record;
  if (isUnfinished(parts, vm.record)) {
    vm.record = { ...vm.record, driverState: await capture(parts, vm, signal), freed: true };
  } else if (sleptState !== null || (!freed && (status === 'dead' || parts.driver.capabilities.snapshots))) {
    await release(parts, vm);
    vm.record = { ...vm.record, driverState: sleptState ?? vm.record.driverState, sleptState: null };
  }
}
