// How a VM goes down without being destroyed: its process ended, or it never came up. Its machine
// resources are freed, its record says why. The folder of a VM that ran stays until it is
// destroyed: its disk may hold what nobody else has.
import type { VmDeathCode } from '@berth/protocol/host.ts';
import { HostError, messageOf } from '../host-error.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import type { LifecycleParts, OwnedVm, Watch } from '../owned/owned-vm.ts';

/** Why a VM is dead, and when it was last seen to run; null where nobody knows. */
export interface Death {
  code: VmDeathCode;
  reason: string;
  lastAliveUnixMs: number | null;
}

/**
 * Has the driver end and free everything outside the folder; `freed` in the record says that it
 * did. Rejects when it could not; may be called again.
 */
export async function release(parts: LifecycleParts, vm: OwnedVm): Promise<void> {
  await parts.driver.destroy(parts.directory.driverFolder(vm.id), vm.record.driverState);
  vm.record = { ...vm.record, freed: true };
}

/** Watches a process that runs; when it ends while the VM is `running`, the VM becomes `dead`. */
export function startWatching(parts: LifecycleParts, vm: OwnedVm, process: ProcessIdentity): Watch {
  const stop = new AbortController();
  const watch: Watch = { process, stop, gone: parts.driver.exited(process, stop.signal) };
  vm.watch = watch;
  void watch.gone.then(async (end) => {
    if (!stop.signal.aborted) {
      vm.closeStreams(new HostError('vm_not_running', `the VM is dead: ${end.reason}`));
      await vm.turns.take(() => cameDown(parts, vm, watch, end));
    }
  });
  return watch;
}

/**
 * Aborts, with the code given, when the watched process ends: whatever is asked of a guest is in
 * vain then.
 */
export function diedSignal(
  watch: Watch,
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
 * Lets go of guest and process, which may go on. Calls of the guest under way fail with `why`,
 * streams into it are closed.
 */
export function letGo(vm: OwnedVm, why: HostError | null = null): void {
  stopWatching(vm);
  vm.closeStreams(why ?? new HostError('vm_not_running', 'the host daemon let go of the VM'));
  vm.guest?.close(why);
  vm.guest = null;
}

/** At the beginning of a verb's turn: it may have come down since the verb was judged. */
export function assertRunning({ record }: OwnedVm): void {
  if (record.status !== 'running') throw new HostError('vm_not_running', `the VM is ${record.status}`);
}

/** In the VM's turn: the watched process ended. Never rejects: nobody waits for it. */
async function cameDown(parts: LifecycleParts, vm: OwnedVm, watch: Watch, end: Death): Promise<void> {
  if (vm.watch !== watch || vm.ending !== null || vm.record.status !== 'running') return;

  parts.log.warn({ vmId: vm.id, epoch: vm.record.epoch, end }, 'the process of a VM ended');
  await markDead(parts, vm, end);
}

/**
 * Writes `dead` with its reason, then frees the VM's resources and removes what is left of a
 * snapshot that its disk has parted from. What fails is logged and left to the destroy or the next
 * start.
 */
export async function markDead(
  parts: LifecycleParts,
  vm: OwnedVm,
  { code, reason, lastAliveUnixMs }: Death,
): Promise<void> {
  letGo(vm, new HostError('vm_not_running', `the VM is dead: ${reason}`));
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
  // Whatever the disk says: an earlier record that says it runs, of a process that is gone, has the
  // next daemon find it dead as well.
  await orLog(parts, vm, 'the record of a dead VM was not written', () => parts.directory.write(dead));
  vm.record = dead;
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
    log.error({ vmId: vm.id, err: error }, `${failed}: ${messageOf(error)}`);
  }
}
