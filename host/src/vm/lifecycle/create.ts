// Creates a VM: folders, record, secret, restore, identity, running. Each step is on disk before
// the next begins, so that a crash at any point loses nothing. Runs in the VM's turn; must not
// respond to callers.
import { sendIdentity, makeGuestSecret, makeIdentity } from '../../guest/identity.ts';
import { HostError, boundedMessageOf } from '../host-error.ts';
import { crashPoint } from '../crash-point.ts';
import type { TakenVm } from '../../pool/hand-over.ts';
import type { WarmPool } from '../../pool/pool.ts';
import type { RunningVm } from '../driver.ts';
import { diedSignal, detach, release, startWatching } from './exit.ts';
import { newDiskKey } from '../directory/secret-folders.ts';
import { egressOf, type LifecycleParts, type OwnedVm } from '../owned/owned-vm.ts';

/**
 * Brings the VM up to `running`. On failure the VM is `dead` with nothing left and this rejects
 * with `create_failed`. If a destroy overtakes it, it stops and rejects with `superseded`; the
 * destroy cleans up.
 */
export async function startVm(
  parts: LifecycleParts,
  vm: OwnedVm,
  dataKey: string | null,
  abort: AbortController,
): Promise<void> {
  const startedMs = performance.now();
  const { createMs } = parts.deadlines;
  const deadline = AbortSignal.timeout(createMs);
  const signal = AbortSignal.any([abort.signal, deadline]);
  const endCreate = parts.pool?.underWay();
  try {
    await makeRunning(parts, vm, dataKey, signal, parts.pool ?? null).catch(async (error: unknown) => {
      if (vm.record.machineId === null || signal.aborted || vm.ending !== null) throw error;

      parts.log.warn(
        { vmId: vm.id, machineId: vm.record.machineId, err: error },
        'a VM of the pool is unusable; creating a new one',
      );
      detach(vm);
      await makeRunning(parts, vm, dataKey, signal, null);
    });
  } catch (error) {
    detach(vm);
    if (vm.ending !== null) throw new HostError('superseded', 'a destroy overtook the create', { cause: error });

    const late = deadline.aborted && !abort.signal.aborted;
    const reason = late
      ? `it was not running within ${createMs / 1_000} s: ${boundedMessageOf(error)}`
      : boundedMessageOf(error);
    parts.log.warn({ vmId: vm.id, epoch: vm.record.epoch, err: error }, 'a VM did not start');
    await giveUp(parts, vm, reason);
    if (abort.signal.aborted) {
      // The daemon is closing, not a fault of the VM: a retry may succeed at the next daemon.
      throw abort.signal.reason;
    }
    throw new HostError('create_failed', reason, { cause: error });
  } finally {
    endCreate?.();
  }
  const { epoch } = vm.record;
  parts.log.info(
    { vmId: vm.id, machineId: vm.machineId, epoch, tookMs: Math.round(performance.now() - startedMs) },
    'a VM is running',
  );
}

/** Takes a pool VM if one fits; otherwise restores one now. */
async function makeRunning(
  parts: LifecycleParts,
  vm: OwnedVm,
  dataKey: string | null,
  signal: AbortSignal,
  pool: WarmPool | null,
): Promise<void> {
  const { directory } = parts;
  const { id, spec } = { id: vm.id, spec: vm.record.spec };
  signal.throwIfAborted();
  crashPoint('create:accepted');
  if (vm.record.driverState !== null) {
    // Free what an earlier attempt could not.
    await release(parts, vm);
    await directory.removeContents(id);
    vm.record = { ...vm.record, machineId: null, driverState: null, freed: false };
  }

  await directory.makeFolders(id);
  await directory.holdDataKey(id, dataKey);
  crashPoint('create:folders-made');
  if (parts.encryptDisks === true && dataKey === null)
    throw new Error('cannot encrypt the disk: the API sent no data key. Upgrade it, or unset BERTH_ENCRYPT_DISKS');
  const identity = makeIdentity(spec, makeGuestSecret());
  const taken = pool === null ? null : await takeFrom(pool, parts, vm, signal);
  vm.guest = taken?.guest ?? null;
  if (taken === null) {
    await directory.write(vm.record);
    crashPoint('create:recorded');
  }
  const diskKey = taken === null ? newDiskKey(parts) : taken.diskKey;
  await Promise.all([
    directory.writeSecret(id, identity.secret),
    directory.writeNames(id, identity),
    directory.writeDiskKey(id, diskKey),
  ]);
  crashPoint('create:secret-written');

  signal.throwIfAborted();
  const running = taken?.running ?? (await restore(parts, vm, signal));
  crashPoint('create:restored');

  const watch = startWatching(parts, vm, running);
  vm.guest ??= parts.guests.clientOf(running.guest);
  const alive = AbortSignal.any([signal, diedSignal(watch, 'create_failed')]);
  const egress = egressOf(vm.record);
  // A pool VM has an open network; nothing of the tenant runs before the identity.
  if (taken !== null && egress.mode !== 'open') await parts.driver.setEgress(vm.record.driverState ?? {}, egress);
  await sendIdentity(vm.guest, identity, alive, parts.deadlines.createMs);
  crashPoint('create:identified');

  signal.throwIfAborted();
  await directory.write({ ...vm.record, status: 'running', everRan: true });
  crashPoint('create:running-recorded');
  vm.record = { ...vm.record, status: 'running', everRan: true };
  if (vm.ending !== null) throw new HostError('superseded', 'a destroy overtook the create');
}

/** The VM's first record names the pool VM: it has an owner at every moment. */
function takeFrom(
  pool: WarmPool,
  { directory }: LifecycleParts,
  vm: OwnedVm,
  signal: AbortSignal,
): Promise<TakenVm | null> {
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
    readDiskKey: () => directory.readDiskKey(vm.id),
    saveState: async (driverState) => {
      vm.record = { ...vm.record, driverState };
      await directory.write(vm.record);
      crashPoint('create:driver-state-saved');
    },
  });
}

/**
 * Never rejects: the caller must see the original failure. The record keeps what could not be
 * freed, for the destroy or the next start.
 */
async function giveUp(parts: LifecycleParts, vm: OwnedVm, reason: string): Promise<void> {
  vm.record = { ...vm.record, status: 'dead', reason: reason.slice(0, 4_096), deathCode: 'not_created' };
  try {
    await release(parts, vm);
    await parts.directory.removeContents(vm.id);
  } catch (error) {
    parts.log.error(
      { vmId: vm.id, err: error },
      `a VM that did not start was not cleaned up: ${boundedMessageOf(error)}`,
    );
  }
  try {
    await parts.directory.write(vm.record);
  } catch (error) {
    parts.log.error(
      { vmId: vm.id, err: error },
      `the record of a VM that did not start was not written: ${boundedMessageOf(error)}`,
    );
  }
}
