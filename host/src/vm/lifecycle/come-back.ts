// How the machine of a VM comes back: restored from its snapshot, or booted from its disk when
// there is no snapshot or it is of no use. Each step is on disk before the next begins. What
// follows once it runs is the wake's (lifecycle-wake.ts); must not speak to its guest.
import type { Amounts } from '../admission.ts';
import { messageOf } from '../host-error.ts';
import { makeGuestSecret } from '../../guest/identity.ts';
import { crashPoint } from '../crash-point.ts';
import type { VmRecord } from '../directory/record.ts';
import { NeverContinued, SnapshotUnusable, type RunningVm, type WokenVm } from '../driver.ts';
import { release } from './exit.ts';
import { capture, isUnfinished } from './sleep.ts';
import { sizeOf, type LifecycleParts, type OwnedVm } from '../owned/owned-vm.ts';

export interface WakeOrder {
  epoch: number;
  size: Amounts;
}

/** A boot of the disk failed, or was given up. */
export class BootFailed extends Error {
  constructor(cause: unknown) {
    super(messageOf(cause), { cause });
  }
}

/**
 * The machine runs when this resolves, and the record says so. `abort`: of the verb, without its
 * deadline.
 */
export async function comeBack(
  parts: LifecycleParts,
  vm: OwnedVm,
  { epoch, size }: WakeOrder,
  signal: AbortSignal,
  abort: AbortSignal,
): Promise<RunningVm> {
  const { directory, driver, log } = parts;
  signal.throwIfAborted();
  crashPoint('wake:accepted');
  await clearLastAttempt(parts, vm, signal);
  // Before anything runs: at no later moment is there a secret that the guest may know and the disk
  // does not.
  await directory.writeNextSecret(vm.id, makeGuestSecret());
  const waking: VmRecord = { ...vm.record, status: 'waking', epoch, continued: false, sizeAsked: sizeOf(size) };
  await directory.write(waking);
  vm.record = waking;
  crashPoint('wake:recorded');
  signal.throwIfAborted();
  if (vm.record.snapshot) {
    try {
      return await fromSnapshot(parts, vm, signal, abort);
    } catch (error) {
      if (vm.record.continued || vm.ending !== null) throw error;

      const isReleased = await releaseAttempt(parts, vm);
      // A boot would take the place on record of a machine that was not ended; with it there, the
      // next wake ends it first.
      if (!isReleased || !(error instanceof SnapshotUnusable) || signal.aborted) throw error;

      log.warn({ vmId: vm.id, epoch, err: error }, 'a snapshot is of no use: the disk of its VM is booted');
      // The disk parts from the snapshot with the boot's first write.
      const givenUp: VmRecord = {
        ...vm.record,
        snapshot: false,
        reason: `its snapshot is of no use: ${messageOf(error)}`.slice(0, 4_096),
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
      snapshotFolder: directory.snapshotFolder(vm.id),
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
    // Of a daemon that closes, the next lets the machine run.
    if (error instanceof NeverContinued && vm.record.continued && !abort.aborted) await takeBack(parts, vm, unspent);

    throw error;
  }
  vm.record = { ...vm.record, spec: { ...vm.record.spec, ...sizeOf(woken.size) } };
  crashPoint('wake:continued');
  return woken;
}

/**
 * The snapshot is not spent after all. On disk before the machine is ended: a daemon killed in
 * between leaves the next one a wake to undo, not a machine that ran and is gone. Never rejects:
 * what could not be written is written again when the wake is given up.
 */
async function takeBack({ directory, log }: LifecycleParts, vm: OwnedVm, unspent: VmRecord): Promise<void> {
  vm.record = unspent;
  try {
    await directory.write(unspent);
  } catch (error) {
    log.error(
      { vmId: vm.id, err: error },
      `the record of a VM whose machine never ran was not written: ${messageOf(error)}`,
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
      saveState: async (driverState) => {
        vm.record = { ...vm.record, driverState, freed: false };
        await directory.write(vm.record);
        crashPoint('boot:driver-state-saved');
      },
    });
  } catch (error) {
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
 * Frees what an attempt made, and goes back to the state that the next one needs. False when it
 * could not, and it stays in the record. Never rejects.
 */
export async function releaseAttempt(parts: LifecycleParts, vm: OwnedVm): Promise<boolean> {
  try {
    await release(parts, vm);
    vm.record = { ...vm.record, driverState: vm.record.sleptState ?? vm.record.driverState, sleptState: null };
    return true;
  } catch (error) {
    parts.log.error({ vmId: vm.id, err: error }, `a VM that did not wake was not cleaned up: ${messageOf(error)}`);
    return false;
  }
}

/**
 * What the sleep or an earlier attempt left because it could not be freed then: two machines must
 * never run on one disk.
 */
async function clearLastAttempt(parts: LifecycleParts, vm: OwnedVm, signal: AbortSignal): Promise<void> {
  const { status, freed, sleptState } = vm.record;
  if (isUnfinished(parts, vm.record)) {
    vm.record = { ...vm.record, driverState: await capture(parts, vm, signal), freed: true };
  } else if (sleptState !== null || (!freed && (status === 'dead' || parts.driver.capabilities.snapshots))) {
    await release(parts, vm);
    vm.record = { ...vm.record, driverState: sleptState ?? vm.record.driverState, sleptState: null };
  }
}
