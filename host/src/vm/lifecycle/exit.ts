// Takes a VM down without destroying it, after its process exited or never came up. Frees its host
// resources and records the reason. Keeps the folder of a VM that ran until its destroy: its disk
// may hold unique data.
import type { VmDeathCode } from '@berth/protocol/host.ts';
import { HostError, boundedMessageOf } from '../host-error.ts';
import type { RunningVm } from '../driver.ts';
import { keepConsole } from './consoles.ts';
import { modelsOf } from './models.ts';
import type { LifecycleParts, OwnedVm, ProcessWatch } from '../owned/owned-vm.ts';

/** Reason of a VM's death, and the last time it was seen running; null if unknown. */
export interface Death {
  code: VmDeathCode;
  reason: string;
  lastAliveUnixMs: number | null;
}

/**
 * Has the driver end and free everything outside the folder, and records `freed`. Rejects if it
 * could not; may be repeated.
 */
export async function release(parts: LifecycleParts, vm: OwnedVm): Promise<void> {
  await parts.driver.destroy(parts.directory.driverFolder(vm.id), vm.record.driverState);
  vm.record = { ...vm.record, freed: true };
}

/**
 * Watches the process of a VM that starts to run; if it exits while the VM is `running`, the VM
 * becomes `dead`.
 */
export function startWatching(parts: LifecycleParts, vm: OwnedVm, { process, models }: RunningVm): ProcessWatch {
  const stop = new AbortController();
  const watch: ProcessWatch = { process, stop, gone: parts.driver.exited(process, stop.signal) };
  vm.watch = watch;
  vm.models = modelsOf(parts, vm, models);
  void watch.gone.then(async (end) => {
    if (!stop.signal.aborted) {
      vm.closeStreams(new HostError('vm_not_running', `the VM is dead: ${end.reason}`));
      await vm.queue.run(() => onExit(parts, vm, watch, end));
    }
  });
  return watch;
}

/**
 * A signal that aborts with the given code when the watched process exits, so that guest calls fail
 * at once.
 */
export function diedSignal(
  watch: ProcessWatch,
  code: 'create_failed' | 'wake_failed' | 'resize_failed' | 'vm_not_running',
): AbortSignal {
  const died = new AbortController();
  void watch.gone.then((end) => died.abort(new HostError(code, end.reason)));
  return died.signal;
}

function stopWatching(vm: OwnedVm): void {
  vm.watch?.stop.abort();
  vm.watch = null;
}

/**
 * Detaches from guest and process, which may keep running. In-flight guest calls fail with `why`;
 * streams into the guest are closed.
 */
export function detach(vm: OwnedVm, why: HostError | null = null): void {
  stopWatching(vm);
  vm.closeStreams(why ?? new HostError('vm_not_running', 'the host daemon released the VM'));
  vm.guest?.close(why);
  vm.guest = null;
  vm.models?.close();
  vm.models = null;
}

/** Call at the start of a verb's turn: the VM may have died since the verb was admitted. */
export function assertRunning({ record }: OwnedVm): void {
  if (record.status !== 'running') throw new HostError('vm_not_running', `the VM is ${record.status}`);
}

/**
 * Runs in the VM's turn after the watched process exited. Never rejects: no caller waits for it.
 */
async function onExit(parts: LifecycleParts, vm: OwnedVm, watch: ProcessWatch, end: Death): Promise<void> {
  if (vm.watch !== watch || vm.ending !== null || vm.record.status !== 'running') return;

  parts.log.warn({ vmId: vm.id, epoch: vm.record.epoch, end }, 'the process of a VM exited');
  await markDead(parts, vm, end);
  await forgetDataKey(parts, vm);
}

/**
 * Removes the data key of a VM that sleeps or is dead from this host's memory; the next wake brings
 * it. Never rejects: the next daemon repeats it.
 */
export async function forgetDataKey(parts: LifecycleParts, vm: OwnedVm): Promise<void> {
  const { status } = vm.record;
  if (status === 'asleep' || status === 'dead')
    await orLog(parts, vm, 'the data key of a VM is still in memory', () => parts.directory.forgetDataKey(vm.id));
}

/**
 * Records `dead` with its reason, then frees the VM's resources and removes a snapshot from which
 * the disk has diverged. Failures are logged and left to the destroy or the next start.
 */
export async function markDead(
  parts: LifecycleParts,
  vm: OwnedVm,
  { code, reason, lastAliveUnixMs }: Death,
): Promise<void> {
  detach(vm, new HostError('vm_not_running', `the VM is dead: ${reason}`));
  const dead = {
    ...vm.record,
    status: 'dead' as const,
    reason: reason.slice(0, 4_096),
    deathCode: code,
    lastAliveUnixMs,
    freed: false,
    snapshot: false,
    sleptState: null,
    continued: false,
    sizeAsked: null,
  };
  // Tolerate a failed write: with an earlier record of a running VM whose process is gone, the next
  // daemon also finds it dead.
  await orLog(parts, vm, 'the record of a dead VM was not written', () => parts.directory.write(dead));
  vm.record = dead;
  await keepConsole(parts, vm);
  await orLog(parts, vm, 'a dead VM was not cleaned up', async () => {
    await release(parts, vm);
    await parts.directory.write(vm.record);
    await parts.directory.removeSnapshot(vm.id);
  });
}

async function orLog({ log }: LifecycleParts, vm: OwnedVm, failed: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    log.error({ vmId: vm.id, err: error }, `${failed}: ${boundedMessageOf(error)}`);
  }
}
