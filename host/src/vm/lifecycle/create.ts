// How a VM comes up: folders, record, secret, restore, identity, running. Each step is on disk
// before the next begins, so that a daemon that is killed anywhere finds all of it. Runs in the
// VM's turn; must not answer callers.
import { giveIdentity, makeGuestSecret, makeIdentity } from '../../guest/identity.ts';
import { GuestClient } from '../../guest/client.ts';
import { HostError, messageOf } from '../host-error.ts';
import { crashPoint } from '../crash-point.ts';
import type { TakenMachine } from '../../pool/hand-over.ts';
import type { WarmPool } from '../../pool/pool.ts';
import type { RunningVm } from '../driver.ts';
import { diedSignal, letGo, release, startWatching } from './exit.ts';
import type { LifecycleParts, OwnedVm } from '../owned/owned-vm.ts';

/**
 * Brings the VM up to `running`, or to `dead` with nothing of it left; rejects then with
 * `create_failed`. When a destroy overtook it, it stops where it is and rejects with `superseded`:
 * the destroy cleans up.
 */
export async function bringUp(parts: LifecycleParts, vm: OwnedVm, abort: AbortController): Promise<void> {
  const startedMs = performance.now();
  const { createMs } = parts.deadlines;
  const deadline = AbortSignal.timeout(createMs);
  const signal = AbortSignal.any([abort.signal, deadline]);
  const over = parts.pool?.underWay();
  try {
    await makeRunning(parts, vm, signal, parts.pool ?? null).catch(async (error: unknown) => {
      if (vm.record.machineId === null || signal.aborted || vm.ending !== null) throw error;

      parts.log.warn(
        { vmId: vm.id, machineId: vm.record.machineId, err: error },
        'a machine of the pool is of no use; the VM gets one of its own',
      );
      letGo(vm);
      await makeRunning(parts, vm, signal, null);
    });
  } catch (error) {
    letGo(vm);
    if (vm.ending !== null) throw new HostError('superseded', 'a destroy overtook the create', { cause: error });

    const late = deadline.aborted && !abort.signal.aborted;
    const reason = late ? `it was not running within ${createMs / 1_000} s: ${messageOf(error)}` : messageOf(error);
    parts.log.warn({ vmId: vm.id, epoch: vm.record.epoch, err: error }, 'a VM did not come up');
    await giveUp(parts, vm, reason);
    if (abort.signal.aborted) {
      // The daemon is closing: no fault of the VM, the same call may succeed at the next one.
      throw abort.signal.reason;
    }
    throw new HostError('create_failed', reason, { cause: error });
  } finally {
    over?.();
  }
  const { epoch } = vm.record;
  parts.log.info(
    { vmId: vm.id, machineId: vm.machineId, epoch, tookMs: Math.round(performance.now() - startedMs) },
    'a VM is running',
  );
}

/**
 * With a machine of the pool, when there is one for it; otherwise with one that is restored now.
 */
async function makeRunning(
  parts: LifecycleParts,
  vm: OwnedVm,
  signal: AbortSignal,
  pool: WarmPool | null,
): Promise<void> {
  const { directory } = parts;
  const { id, spec } = { id: vm.id, spec: vm.record.spec };
  signal.throwIfAborted();
  crashPoint('create:accepted');
  if (vm.record.driverState !== null) {
    // Left by an earlier attempt that could not be cleaned up then.
    await release(parts, vm);
    await directory.removeContents(id);
    vm.record = { ...vm.record, machineId: null, driverState: null, freed: false };
  }

  await directory.makeFolders(id);
  crashPoint('create:folders-made');
  const identity = makeIdentity(spec, makeGuestSecret());
  const taken = pool === null ? null : await takeFrom(pool, parts, vm, signal);
  vm.guest = taken?.guest ?? null;
  if (taken === null) {
    await directory.write(vm.record);
    crashPoint('create:recorded');
  }
  await Promise.all([directory.writeSecret(id, identity.secret), directory.writeNames(id, identity)]);
  crashPoint('create:secret-written');

  signal.throwIfAborted();
  const running = taken?.running ?? (await restore(parts, vm, signal));
  crashPoint('create:restored');

  const watch = startWatching(parts, vm, running.process);
  vm.guest ??= new GuestClient(running.guest);
  const alive = AbortSignal.any([signal, diedSignal(watch, 'create_failed')]);
  await giveIdentity(vm.guest, identity, alive, parts.deadlines.createMs);
  crashPoint('create:identified');

  signal.throwIfAborted();
  await directory.write({ ...vm.record, status: 'running', everRan: true });
  crashPoint('create:running-recorded');
  vm.record = { ...vm.record, status: 'running', everRan: true };
  if (vm.ending !== null) throw new HostError('superseded', 'a destroy overtook the create');
}

/**
 * The record that names the machine is the first one of the VM: what the pool hands out has an
 * owner at every moment.
 */
function takeFrom(
  pool: WarmPool,
  { directory }: LifecycleParts,
  vm: OwnedVm,
  signal: AbortSignal,
): Promise<TakenMachine | null> {
  return pool.take({
    size: vm.record.spec,
    folder: directory.driverFolder(vm.id),
    signal,
    saveState: async (machineId, driverState) => {
      vm.record = { ...vm.record, machineId, driverState };
      await directory.write(vm.record);
    },
  });
}

function restore({ driver, directory }: LifecycleParts, vm: OwnedVm, signal: AbortSignal): Promise<RunningVm> {
  return driver.create({
    id: vm.id,
    spec: vm.record.spec,
    folder: directory.driverFolder(vm.id),
    signal,
    saveState: async (driverState) => {
      vm.record = { ...vm.record, driverState };
      await directory.write(vm.record);
      crashPoint('create:driver-state-saved');
    },
  });
}

/**
 * Never rejects: the reason of the failure must reach the caller. What could not be freed stays in
 * the record for the destroy or the next start.
 */
async function giveUp(parts: LifecycleParts, vm: OwnedVm, reason: string): Promise<void> {
  vm.record = { ...vm.record, status: 'dead', reason: reason.slice(0, 4_096), deathCode: 'not_created' };
  try {
    await release(parts, vm);
    await parts.directory.removeContents(vm.id);
  } catch (error) {
    parts.log.error({ vmId: vm.id, err: error }, `a VM that did not come up was not cleaned up: ${messageOf(error)}`);
  }
  try {
    await parts.directory.write(vm.record);
  } catch (error) {
    parts.log.error(
      { vmId: vm.id, err: error },
      `the record of a VM that did not come up was not written: ${messageOf(error)}`,
    );
  }
}
