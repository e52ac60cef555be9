// Puts a VM to sleep: an empty snapshot folder, the record, the driver's capture, the record again.
// Each step is on disk before the next begins. Until the manifest is complete the VM can resume;
// from then on the sleep is finished, if necessary by the next daemon.
import { HostError, boundedMessageOf } from '../host-error.ts';
import { crashPoint } from '../crash-point.ts';
import type { DriverState } from '../driver.ts';
import { endClone } from './clone.ts';
import { assertRunning, detach, forgetDataKey } from './exit.ts';
import type { VmRecord } from '../directory/record.ts';
import { sizeOf, type LifecycleParts, type OwnedVm } from '../owned/owned-vm.ts';

/**
 * Brings a running VM to `asleep`. If the capture fails, the VM keeps running under the new epoch
 * and this rejects with `sleep_failed`; if a destroy overtakes it, with `superseded`.
 */
export async function putToSleep(
  parts: LifecycleParts,
  vm: OwnedVm,
  { epoch, dataKey }: { epoch: number; dataKey: string | null },
  abort: AbortController,
): Promise<void> {
  const startedMs = performance.now();
  const { sleepMs } = parts.deadlines;
  const signal = AbortSignal.any([abort.signal, AbortSignal.timeout(sleepMs)]);
  crashPoint('sleep:accepted');
  assertRunning(vm);
  vm.closeStreams(new HostError('vm_not_running', 'the VM goes to sleep'));
  let driverState: DriverState | null;
  try {
    await endClone(parts, vm, signal);
    // A VM created under an earlier release has no key yet.
    await parts.directory.holdDataKey(vm.id, dataKey);
    signal.throwIfAborted();
    // Before the record becomes `sleeping`: a complete snapshot found from then on counts as this
    // sleep's.
    await parts.directory.makeSnapshotFolder(vm.id);
    vm.record = { ...vm.record, status: 'sleeping', epoch };
    await parts.directory.write(vm.record);
    crashPoint('sleep:recorded');
    driverState = await capture(parts, vm, signal);
    crashPoint('sleep:captured');
  } catch (error) {
    if (vm.ending !== null) throw new HostError('superseded', 'a destroy overtook the sleep', { cause: error });

    if (!(await isCaptured(parts, vm))) {
      await keepRunning(parts, vm, epoch, error);
      if (abort.signal.aborted) throw abort.signal.reason;

      throw new HostError('sleep_failed', `the VM keeps running: ${boundedMessageOf(error)}`, { cause: error });
    }
    parts.log.warn({ vmId: vm.id, epoch, err: error }, 'a VM is captured, but its process was not released');
    driverState = null;
  }
  detach(vm, new HostError('vm_not_running', 'the VM went to sleep'));
  if (driverState === null) await finishSleep(parts, vm);
  else await recordAsleep(parts, vm, driverState);

  crashPoint('sleep:asleep-recorded');
  await forgetDataKey(parts, vm);
  crashPoint('sleep:key-forgotten');
  parts.log.info({ vmId: vm.id, epoch, tookMs: Math.round(performance.now() - startedMs) }, 'a VM is asleep');
  if (vm.ending !== null) throw new HostError('superseded', 'a destroy overtook the sleep');
}

/** The driver's part. May be repeated once the manifest is complete. */
export async function capture(
  { driver, directory }: LifecycleParts,
  vm: OwnedVm,
  signal: AbortSignal,
): Promise<DriverState> {
  const size = sizeOf(vm.record.spec);
  const snapshotFolder = directory.snapshotFolder(vm.id);
  const readDiskKey = (): Promise<string | null> => directory.readDiskKey(vm.id);
  return driver.sleep({ ...vm.existing(directory.driverFolder(vm.id), signal), snapshotFolder, size, readDiskKey });
}

/**
 * With a complete snapshot: releases the VM's remaining resources. The VM is asleep even if that
 * fails; the next wake or daemon releases them first. Never rejects.
 */
export async function finishSleep(parts: LifecycleParts, vm: OwnedVm): Promise<void> {
  try {
    await recordAsleep(parts, vm, await capture(parts, vm, AbortSignal.timeout(parts.deadlines.sleepMs)));
  } catch (error) {
    vm.record = { ...vm.record, status: 'asleep', snapshot: true, freed: false, reason: null };
    parts.log.error(
      { vmId: vm.id, err: error },
      `the process of a sleeping VM was not released: ${boundedMessageOf(error)}`,
    );
  }
}

/** True if {@link finishSleep} must be repeated. */
export function isUnfinished({ driver }: LifecycleParts, { status, snapshot, freed, sleptState }: VmRecord): boolean {
  return driver.capabilities.snapshots && status === 'asleep' && snapshot && !freed && sleptState === null;
}

/** True if the manifest is complete; false for an unreadable folder. */
async function isCaptured({ driver, directory, log }: LifecycleParts, vm: OwnedVm): Promise<boolean> {
  try {
    return vm.record.status === 'sleeping' && (await driver.hasSnapshot(directory.snapshotFolder(vm.id)));
  } catch (error) {
    log.error(
      { vmId: vm.id, err: error },
      `could not determine whether a snapshot is complete: ${boundedMessageOf(error)}`,
    );
    return false;
  }
}

/** Never rejects: `sleeping` with a complete snapshot means the same to the next daemon. */
async function recordAsleep(parts: LifecycleParts, vm: OwnedVm, driverState: DriverState): Promise<void> {
  // A driver that only stops its processes still has them on the host; recovery must know their
  // owner.
  const freed = parts.driver.capabilities.snapshots;
  vm.record = { ...vm.record, status: 'asleep', driverState, snapshot: true, freed, reason: null };
  try {
    await parts.directory.write(vm.record);
  } catch (error) {
    parts.log.error(
      { vmId: vm.id, err: error },
      `the record of a sleeping VM was not written: ${boundedMessageOf(error)}`,
    );
  }
}

/** Never rejects: with `sleeping` and no complete snapshot the next daemon resumes the VM. */
async function keepRunning(parts: LifecycleParts, vm: OwnedVm, epoch: number, error: unknown): Promise<void> {
  parts.log.warn({ vmId: vm.id, epoch, err: error }, 'a VM could not be put to sleep and keeps running');
  vm.record = { ...vm.record, status: 'running', epoch };
  try {
    await parts.directory.write(vm.record);
    await parts.directory.removeSnapshot(vm.id);
  } catch (failure) {
    parts.log.error(
      { vmId: vm.id, err: failure },
      `the record of a VM that keeps running was not written: ${boundedMessageOf(failure)}`,
    );
  }
}
