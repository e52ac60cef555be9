// Resizes a running VM: the driver hot-plugs, the guest brings it online and verifies it, the
// record follows. A failure is undone as far as the guest releases the additions.
import { HostError, boundedMessageOf } from '../host-error.ts';
import { sendSize } from '../../guest/identity.ts';
import type { Amounts } from '../admission.ts';
import { crashPoint } from '../crash-point.ts';
import { ResizeFailed } from '../driver.ts';
import { sameSize } from '../owned/fencing.ts';
import { assertRunning, diedSignal } from './exit.ts';
import { sizeOf, type LifecycleParts, type OwnedVm } from '../owned/owned-vm.ts';

/** Beyond the verb's deadline, within the control plane's timeout. */
const ROLL_BACK_MS = 20_000;

interface ResizeOrder {
  epoch: number;
  size: Amounts;
}

/**
 * Runs in the VM's turn. Rejects with `resize_failed` if the VM does not reach the size; it keeps
 * running at the size in its record.
 */
export async function grow(
  parts: LifecycleParts,
  vm: OwnedVm,
  { epoch, size }: ResizeOrder,
  abort: AbortController,
): Promise<void> {
  const startedMs = performance.now();
  const { directory, deadlines, log } = parts;
  const deadline = AbortSignal.timeout(deadlines.resizeMs);
  assertRunning(vm);
  const died =
    vm.watch === null
      ? AbortSignal.abort(new Error('its process is not watched'))
      : diedSignal(vm.watch, 'resize_failed');
  crashPoint('resize:accepted');
  const raised = { ...vm.record, epoch };
  await directory.write(raised);
  vm.record = raised;
  crashPoint('resize:epoch-recorded');

  const { has, failure } = await changeSize(parts, vm, size, AbortSignal.any([abort.signal, deadline, died]));
  if (vm.ending !== null) throw new HostError('superseded', 'a destroy overtook the resize', { cause: failure });

  if (!sameSize(vm.record.spec, has)) {
    // Update memory first: the VM has this size, even if the record cannot be written.
    vm.record = { ...vm.record, spec: { ...vm.record.spec, ...has } };
    await directory.write(vm.record);
    crashPoint('resize:recorded');
  }
  if (failure !== null) {
    log.warn({ vmId: vm.id, epoch, err: failure, has }, 'a VM was not resized');
    throw abort.signal.aborted
      ? abort.signal.reason
      : new HostError('resize_failed', boundedMessageOf(failure), { cause: failure });
  }
  log.info({ vmId: vm.id, epoch, size: has, tookMs: Math.round(performance.now() - startedMs) }, 'a VM is resized');
}

/**
 * Resizes a running VM as far as possible. Resolves with the actual size, and with the failure if
 * it is not the requested one; never rejects. Surplus vCPUs or memory that the guest does not
 * release is no failure.
 */
export async function changeSize(
  parts: LifecycleParts,
  vm: OwnedVm,
  to: Amounts,
  signal: AbortSignal,
): Promise<{ has: Amounts; failure: Error | null }> {
  const { driver, directory, deadlines } = parts;
  const folder = directory.driverFolder(vm.id);
  const from = sizeOf(vm.record.spec);
  let plugged: Amounts | null = null;
  try {
    signal.throwIfAborted();
    plugged = sizeOf(await driver.resize(vm.existing(folder, signal), from, to));
    crashPoint('resize:plugged');
    if (vm.guest === null) throw new HostError('vm_not_running', 'there is no connection to its guest');

    await sendSize(vm.guest, plugged, { signal, deadlineMs: deadlines.resizeMs });
    crashPoint('resize:verified');
    if (plugged.vcpu < to.vcpu || plugged.memoryMib < to.memoryMib || plugged.diskGib < to.diskGib) {
      throw new HostError(
        'resize_failed',
        `it has ${plugged.vcpu} vCPUs, ${plugged.memoryMib} MiB and ${plugged.diskGib} GiB`,
      );
    }

    return { has: plugged, failure: null };
  } catch (error) {
    const failure = error instanceof Error ? error : new Error(String(error));
    if (plugged === null) {
      // A rejecting driver has undone its additions and reports the remaining size.
      return { has: failure instanceof ResizeFailed ? sizeOf(failure.has) : from, failure };
    }
    // A VM being destroyed needs no undo.
    return { has: vm.ending === null ? await rollBack(parts, vm, plugged, from) : from, failure };
  }
}

/** Never rejects. Additions that the guest does not release stay and count. */
async function rollBack(parts: LifecycleParts, vm: OwnedVm, plugged: Amounts, from: Amounts): Promise<Amounts> {
  try {
    const signal = AbortSignal.timeout(Math.min(ROLL_BACK_MS, parts.deadlines.resizeMs));
    return sizeOf(await parts.driver.resize(vm.existing(parts.directory.driverFolder(vm.id), signal), plugged, from));
  } catch (error) {
    parts.log.error(
      { vmId: vm.id, err: error },
      `the hot-plug of a failed resize was not undone: ${boundedMessageOf(error)}`,
    );
    return error instanceof ResizeFailed ? sizeOf(error.has) : plugged;
  }
}
