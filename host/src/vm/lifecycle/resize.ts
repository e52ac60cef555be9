// How a VM that runs gets another size: the driver plugs in, the guest brings it online and reads
// it back, the record says so. What does not work is taken back as far as the guest lets go of it.
import { HostError, messageOf } from '../host-error.ts';
import { giveSize } from '../../guest/identity.ts';
import type { Amounts } from '../admission.ts';
import { crashPoint } from '../crash-point.ts';
import { ResizeFailed } from '../driver.ts';
import { sameSize } from '../owned/fencing.ts';
import { assertRunning, diedSignal } from './exit.ts';
import { sizeOf, type LifecycleParts, type OwnedVm } from '../owned/owned-vm.ts';

/** Beyond the verb's own deadline, within what the control plane grants. */
const TAKE_BACK_MS = 20_000;

interface ResizeOrder {
  epoch: number;
  size: Amounts;
}

/**
 * In the VM's turn. Rejects with `resize_failed` when it does not have the size then; it runs on,
 * as large as its record says.
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
    // First in memory: the machine has it, so it counts, whether it can be written or not.
    vm.record = { ...vm.record, spec: { ...vm.record.spec, ...has } };
    await directory.write(vm.record);
    crashPoint('resize:recorded');
  }
  if (failure !== null) {
    log.warn({ vmId: vm.id, epoch, err: failure, has }, 'a VM was not resized');
    throw abort.signal.aborted
      ? abort.signal.reason
      : new HostError('resize_failed', messageOf(failure), { cause: failure });
  }
  log.info({ vmId: vm.id, epoch, size: has, tookMs: Math.round(performance.now() - startedMs) }, 'a VM is resized');
}

/**
 * Gives a running machine the size, as far as that works. Resolves with the size that it has, and
 * with why that is not the one asked for; never rejects. Less than before of vCPUs or memory is no
 * failure when the guest does not let go of it.
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

    await giveSize(vm.guest, plugged, { signal, deadlineMs: deadlines.resizeMs });
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
      // A driver that rejects has taken back what it had plugged in, and says what it could not.
      return { has: failure instanceof ResizeFailed ? sizeOf(failure.has) : from, failure };
    }
    // A VM that is being destroyed needs nothing taken back.
    return { has: vm.ending === null ? await takeBack(parts, vm, plugged, from) : from, failure };
  }
}

/** Never rejects. What the guest does not let go of stays: the machine holds it, so it counts. */
async function takeBack(parts: LifecycleParts, vm: OwnedVm, plugged: Amounts, from: Amounts): Promise<Amounts> {
  try {
    const signal = AbortSignal.timeout(Math.min(TAKE_BACK_MS, parts.deadlines.resizeMs));
    return sizeOf(await parts.driver.resize(vm.existing(parts.directory.driverFolder(vm.id), signal), plugged, from));
  } catch (error) {
    parts.log.error(
      { vmId: vm.id, err: error },
      `what a failed resize had plugged in was not taken back: ${messageOf(error)}`,
    );
    return error instanceof ResizeFailed ? sizeOf(error.has) : plugged;
  }
}
