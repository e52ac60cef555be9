// Recovery at start, from a crash at any step: adopts running VMs, ends half-made ones, finishes
// destroys, reaps what no record names. Finishes a sleep or wake past its point of no return, and
// undoes it otherwise. Nothing here may stop the daemon from starting.
import { health } from '@berth/protocol/calls/identity.ts';
import { eachOf } from '@berth/os/each-of.ts';
import { GuestRefusal } from '../../guest/client.ts';
import { boundedMessageOf } from '../host-error.ts';
import type { VmRecord } from '../directory/record.ts';
import type { RunningVm } from '../driver.ts';
import { tearDown } from './destroy.ts';
import { enforceRecorded } from './egress.ts';
import { diedSignal, forgetDataKey, markDead, release, startWatching, type Death } from './exit.ts';
import { finishSleep, isUnfinished } from './sleep.ts';
import { resumeWake, undoWake } from './wake.ts';
import { egressOf, OwnedVm, sizeOf, type LifecycleParts } from '../owned/owned-vm.ts';

/** Limit of concurrent recoveries: each may start a process or call a slow guest. */
const AT_ONCE = 8;

/**
 * Resolves with every VM that still has a record, and with the ids of VMs whose record could not be
 * read; those are untouched.
 */
export async function recoverAll(parts: LifecycleParts): Promise<{ owned: OwnedVm[]; unread: string[] }> {
  const records: VmRecord[] = [];
  const useless: { id: string; damaged: boolean }[] = [];
  const unread: string[] = [];
  for (const id of await parts.directory.list()) {
    const found = await parts.directory.read(id).catch((error: unknown) => ({ kind: 'unreadable' as const, error }));
    if (found.kind === 'record') {
      records.push(found.record);
    } else if (found.kind === 'unreadable') {
      // A disk failure, not a bad record: leave the unknown VM untouched.
      unread.push(id);
      parts.log.error({ vmId: id, err: found.error }, 'the record of a VM cannot be read; the VM is left unchanged');
    } else {
      // No record: the daemon died between folder and record, before anything was made. A damaged
      // record may belong to a disk that is still needed.
      const damaged = found.kind === 'corrupt';
      useless.push({ id, damaged });
      if (damaged) {
        parts.log.error(
          { vmId: id, found },
          'the record of a VM is damaged: killing the VM and setting its folder aside',
        );
      } else {
        parts.log.info({ vmId: id }, 'removing a VM without a record');
      }
    }
  }
  const owned: OwnedVm[] = [];
  await eachOf(records, AT_ONCE, async (record) => {
    const vm = new OwnedVm(record);
    if (await recoverOne(parts, vm)) owned.push(vm);
  });
  await eachOf(useless, AT_ONCE, ({ id }) =>
    attempt(parts, id, 'ending a VM without a usable record', () =>
      parts.driver.destroy(parts.directory.driverFolder(id), null),
    ),
  );

  if (unread.length > 0) {
    // Only the records hold the driver's ids of these VMs.
    parts.log.error({ vmIds: unread }, 'orphans are not reaped: they could belong to a VM whose record cannot be read');
  } else {
    const known = new Set(owned.filter((vm) => !vm.record.freed).map((vm) => vm.machineId));
    await attempt(parts, null, 'reaping', async () => {
      const reaped = await parts.driver.reapOrphans(known);
      if (reaped.length > 0) parts.log.warn({ reaped }, 'reaped VMs without a record');
    });
  }
  // Folders last: the driver may read from them what to end.
  await eachOf(useless, AT_ONCE, ({ id, damaged }) =>
    attempt(parts, id, 'removing its folder', () =>
      damaged ? parts.directory.setAside(id) : parts.directory.remove(id),
    ),
  );
  return { owned, unread };
}

/** Recovers one VM from its record. False if nothing of it is left. */
export async function recoverOne(parts: LifecycleParts, vm: OwnedVm): Promise<boolean> {
  const { id, record } = { id: vm.id, record: vm.record };
  const destroyedEpoch = parts.fences.epochOf(id) ?? 0;
  if (record.status === 'destroying' || destroyedEpoch >= record.epoch) {
    return !(await attempt(parts, id, 'finishing its destroy', () =>
      tearDown(parts, vm, Math.max(record.epoch, destroyedEpoch)),
    ));
  }

  switch (record.status) {
    case 'running':
      await attempt(parts, id, 'adopting it', () => vm.queue.run(() => adopt(parts, vm)));
      await attempt(parts, id, 'removing a spent snapshot', () => parts.directory.removeSnapshot(id));
      await attempt(parts, id, 'removing the console of an earlier death', () => parts.directory.removeConsole(id));
      break;
    case 'creating':
      parts.log.warn({ vmId: id }, 'discarding a half-created VM');
      vm.record = {
        ...record,
        status: 'dead',
        reason: 'the host daemon exited while the VM was being created',
        deathCode: 'not_created',
      };
      await attempt(parts, id, 'discarding a half-created VM', () => clear(parts, vm));
      break;
    case 'sleeping':
      await vm.queue.run(() => settleSleep(parts, vm));
      break;
    case 'asleep':
      if (isUnfinished(parts, record)) await finishSleep(parts, vm);

      await attempt(parts, id, 'checking its snapshot', () => checkSnapshot(parts, vm));
      break;
    case 'waking':
      await vm.queue.run(() => settleWake(parts, vm));
      break;
    case 'dead':
      if (!record.freed) await attempt(parts, id, 'freeing a dead VM', () => clear(parts, vm));
  }
  await forgetDataKey(parts, vm);
  return true;
}

/**
 * Finishes the sleep if the snapshot is complete; otherwise the VM resumes, or is dead with its
 * disk.
 */
async function settleSleep(parts: LifecycleParts, vm: OwnedVm): Promise<void> {
  const { driver, directory, log } = parts;
  try {
    if (await driver.hasSnapshot(directory.snapshotFolder(vm.id))) {
      await finishSleep(parts, vm);
      log.info({ vmId: vm.id, epoch: vm.record.epoch }, 'completed an interrupted sleep');
      return;
    }
  } catch (error) {
    log.error({ vmId: vm.id, err: error }, 'could not determine the progress of an interrupted sleep');
    await markDead(
      parts,
      vm,
      notAdopted(`its sleep was interrupted, and its snapshot cannot be read: ${boundedMessageOf(error)}`),
    );
    return;
  }
  vm.record = { ...vm.record, status: 'running' };
  await attempt(parts, vm.id, 'recording that it resumes', () => directory.write(vm.record));
  await attempt(parts, vm.id, 'resuming it', () => adopt(parts, vm));
  await attempt(parts, vm.id, 'removing an incomplete snapshot', () => directory.removeSnapshot(vm.id));
}

async function checkSnapshot({ driver, directory }: LifecycleParts, vm: OwnedVm): Promise<void> {
  if (vm.record.snapshot && !(await driver.hasSnapshot(directory.snapshotFolder(vm.id)))) {
    vm.record = { ...vm.record, snapshot: false, reason: 'its snapshot is missing' };
    await directory.write(vm.record);
  }
}

/**
 * Undoes a wake whose VM did not run yet. Finishes one whose VM runs, in the background after the
 * daemon's start; callers join it.
 */
async function settleWake(parts: LifecycleParts, vm: OwnedVm): Promise<void> {
  const { record } = vm;
  if (!record.continued) {
    const left = record.sleptState !== null || (!record.snapshot && !record.freed);
    await undoWake(
      parts,
      vm,
      record.snapshot ? 'asleep' : 'dead',
      left,
      'the host daemon exited while the VM was waking',
    );
    return;
  }
  const running = await takeOver(parts, vm);
  if (running !== null) {
    const { epoch, spec, sizeAsked } = record;
    vm.begin({ status: 'waking', epoch, size: sizeAsked ?? sizeOf(spec) }, (abort) =>
      resumeWake(parts, vm, running, abort),
    );
  }
}

async function clear(parts: LifecycleParts, vm: OwnedVm): Promise<void> {
  await release(parts, vm);
  if (!vm.record.everRan) await parts.directory.removeContents(vm.id);

  await parts.directory.write(vm.record);
}

/**
 * Adopts a running VM if the recorded process runs and its guest knows the recorded secret;
 * otherwise the VM becomes `dead`.
 */
async function adopt(parts: LifecycleParts, vm: OwnedVm): Promise<void> {
  const { directory, log } = parts;
  const running = await takeOver(parts, vm);
  if (running === null) return;

  const secret = await directory.readSecret(vm.id);
  if (secret === null) {
    await markDead(parts, vm, notAdopted('the secret of its guest daemon is lost'));
    return;
  }
  vm.guest = parts.guests.clientOf(running.guest, secret);
  // A clone started by the earlier daemon may continue for some seconds.
  vm.clone.maybe = true;
  const died = diedSignal(startWatching(parts, vm, running), 'vm_not_running');
  try {
    await vm.guest.call(health, {}, { signal: died, deadlineMs: parts.deadlines.adoptMs });
  } catch (error) {
    if (died.aborted) {
      // The process watch marks it dead.
      return;
    }
    if (error instanceof GuestRefusal) {
      await markDead(parts, vm, notAdopted(`its guest does not know the recorded secret: ${error.message}`));
      return;
    }
    // The recorded process runs: never destroy a tenant's VM because its guest is too busy to
    // respond.
    log.warn({ vmId: vm.id, err: error }, 'an adopted guest has not responded yet');
  }
  log.info({ vmId: vm.id, epoch: vm.record.epoch, pid: running.process.pid }, 'VM adopted');
}

/** The VM if its recorded process runs; otherwise the VM is dead. */
async function takeOver(parts: LifecycleParts, vm: OwnedVm): Promise<RunningVm | null> {
  const { driver, directory, log } = parts;
  let running: RunningVm | null;
  try {
    running = await driver.recover(directory.driverFolder(vm.id), vm.record.driverState ?? {}, egressOf(vm.record));
  } catch (error) {
    // For example without its network, so unreachable; `running` would never be corrected.
    log.error({ vmId: vm.id, err: error }, 'a VM could not be taken over; killing it');
    await markDead(parts, vm, notAdopted(`it could not be taken over: ${boundedMessageOf(error)}`));
    return null;
  }
  if (running === null) {
    await markDead(parts, vm, {
      code: 'process_ended',
      reason: 'its process exited while no host daemon ran',
      lastAliveUnixMs: null,
    });
    return null;
  }
  await enforceRecorded(parts, vm);
  return running;
}

function notAdopted(reason: string): Death {
  return { code: 'not_adopted', reason, lastAliveUnixMs: null };
}

/** True on success; a failure is logged, and the VM's record still shows the work to do. */
async function attempt(
  parts: LifecycleParts,
  vmId: string | null,
  what: string,
  work: () => Promise<void>,
): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    parts.log.error({ vmId, err: error }, `${what} failed: ${boundedMessageOf(error)}`);
    return false;
  }
}
