// Wakes a VM: from its snapshot with its processes, or by a boot of its disk if there is no usable
// snapshot. Each step is on disk before the next begins. A failure before the VM runs leaves it as
// it was; afterwards the wake is finished, if necessary by the next daemon, or the VM is dead.
import type { Amounts } from '../admission.ts';
import { GuestRefusal, type GuestClient } from '../../guest/client.ts';
import { HostError, boundedMessageOf } from '../host-error.ts';
import { sendWake, type WakeSecrets } from '../../guest/identity.ts';
import { crashPoint } from '../crash-point.ts';
import type { VmRecord } from '../directory/record.ts';
import type { RunningVm } from '../driver.ts';
import { sameSize } from '../owned/fencing.ts';
import { BootFailed, resumeVm, releaseAttempt, type WakeOrder } from './resume.ts';
import { diedSignal, detach, forgetDataKey, markDead, startWatching } from './exit.ts';
import { changeSize } from './resize.ts';
import { nameBootedVm } from './names.ts';
import { sizeOf, type LifecycleParts, type OwnedVm } from '../owned/owned-vm.ts';

/**
 * Runs in the VM's turn: brings a VM that is asleep, or dead with its disk, to `running`. On
 * failure it is as before, or dead with its disk, and this rejects with `wake_failed`; if a destroy
 * overtakes it, with `superseded`.
 */
export async function wakeUp(
  parts: LifecycleParts,
  vm: OwnedVm,
  order: WakeOrder,
  abort: AbortController,
): Promise<void> {
  const startedMs = performance.now();
  const deadline = AbortSignal.timeout(parts.deadlines.wakeMs);
  const signal = AbortSignal.any([abort.signal, deadline]);
  const before = vm.record;
  const over = parts.pool?.underWay();
  try {
    const running = await resumeVm(parts, vm, order, signal, abort.signal);
    await finishWake(parts, vm, running, [sizeOf(vm.record.spec)], signal);
  } catch (error) {
    const late = deadline.aborted && !abort.signal.aborted;
    throw await giveUp(parts, vm, before, abort, error, late ? timeoutMessage(parts, error) : boundedMessageOf(error));
  } finally {
    over?.();
    await forgetDataKey(parts, vm);
  }
  const { woke, spec } = vm.record;
  parts.log.info(
    { vmId: vm.id, epoch: order.epoch, woke, size: sizeOf(spec), tookMs: Math.round(performance.now() - startedMs) },
    'a VM is awake',
  );
}

/** Runs in the VM's turn: finishes a wake that an earlier daemon left with a running VM. */
export async function resumeWake(
  parts: LifecycleParts,
  vm: OwnedVm,
  running: RunningVm,
  abort: AbortController,
): Promise<void> {
  const signal = AbortSignal.any([abort.signal, AbortSignal.timeout(parts.deadlines.wakeMs)]);
  const { spec, sizeAsked } = vm.record;
  try {
    // The VM may already have its new size.
    await finishWake(parts, vm, running, sizeAsked === null ? [sizeOf(spec)] : [sizeOf(spec), sizeAsked], signal);
  } catch (error) {
    throw await giveUp(parts, vm, vm.record, abort, error, boundedMessageOf(error));
  } finally {
    await forgetDataKey(parts, vm);
  }
  parts.log.info({ vmId: vm.id, epoch: vm.record.epoch }, 'completed an interrupted wake');
}

/**
 * Reverts a wake whose VM does not run: to `asleep` with its snapshot untouched, or `dead` with its
 * disk. Never rejects. After a crash, `left` means that there may be resources to free.
 */
export async function undoWake(
  parts: LifecycleParts,
  vm: OwnedVm,
  status: 'asleep' | 'dead',
  left: boolean,
  reason: string,
): Promise<void> {
  if (left) await releaseAttempt(parts, vm);

  if (status === 'dead') {
    await markDead(parts, vm, { code: 'wake_failed', reason, lastAliveUnixMs: vm.record.lastAliveUnixMs });
    return;
  }
  vm.record = { ...vm.record, status, sizeAsked: null };
  await writeOrLog(parts, vm);
}

/**
 * Everything from the first guest call to the record `running`. `sizes` are the candidates; the
 * first one that the guest confirms is recorded. The final write may fail: the record is then
 * `waking` and continued, so the next daemon finishes it.
 */
async function finishWake(
  parts: LifecycleParts,
  vm: OwnedVm,
  running: RunningVm,
  sizes: readonly Amounts[],
  signal: AbortSignal,
): Promise<void> {
  const { directory, log } = parts;
  const watch = startWatching(parts, vm, running);
  const alive = AbortSignal.any([signal, diedSignal(watch, 'wake_failed')]);
  const guest = parts.guests.clientOf(running.guest);
  vm.guest = guest;
  const secrets = await secretsOf(parts, vm);
  const size = await wakeGuest(parts, guest, secrets, sizes, alive);
  vm.record = { ...vm.record, spec: { ...vm.record.spec, ...size } };
  if (vm.record.woke?.from === 'disk')
    await nameBootedVm(parts, vm, guest, { secret: secrets.fresh, size, signal: alive });

  crashPoint('wake:identified');
  await directory.promoteNextSecret(vm.id);
  crashPoint('wake:secret-promoted');

  const { sizeAsked } = vm.record;
  if (sizeAsked !== null && !sameSize(size, sizeAsked)) {
    const { has, failure } = await changeSize(parts, vm, sizeAsked, alive);
    if (failure !== null)
      log.warn({ vmId: vm.id, err: failure, has, sizeAsked }, 'a woken VM does not have the requested size');

    vm.record = { ...vm.record, spec: { ...vm.record.spec, ...has } };
  }
  const death = { reason: null, deathCode: null, lastAliveUnixMs: null };
  vm.record = { ...vm.record, ...death, status: 'running', continued: false, sizeAsked: null };
  if (await writeOrLog(parts, vm)) {
    crashPoint('wake:running-recorded');
    await directory.removeSnapshot(vm.id).catch((error: unknown) => {
      log.warn({ vmId: vm.id, err: error }, `the remains of a sleep were not removed: ${boundedMessageOf(error)}`);
    });
    await directory.removeConsole(vm.id).catch((error: unknown) => {
      log.warn({ vmId: vm.id, err: error }, `an earlier console was not removed: ${boundedMessageOf(error)}`);
    });
  }
  if (vm.ending !== null) throw new HostError('superseded', 'a destroy overtook the wake');
}

/** Resolves with the size confirmed by the guest. */
async function wakeGuest(
  parts: LifecycleParts,
  guest: GuestClient,
  secrets: WakeSecrets,
  sizes: readonly Amounts[],
  signal: AbortSignal,
): Promise<Amounts> {
  for (const [at, size] of sizes.entries()) {
    try {
      await sendWake(guest, secrets, size, signal, parts.deadlines.wakeMs);
      return size;
    } catch (error) {
      if (!(error instanceof GuestRefusal && error.status === 500 && at < sizes.length - 1)) throw error;
    }
  }
  throw new HostError('wake_failed', 'its size is not known');
}

/**
 * Until the next secret is promoted the guest may know either one; afterwards there is only one.
 */
async function secretsOf({ directory }: LifecycleParts, vm: OwnedVm): Promise<WakeSecrets> {
  const [former, next] = await Promise.all([directory.readSecret(vm.id), directory.readNextSecret(vm.id)]);
  const fresh = next ?? former;
  if (fresh === null) throw new HostError('wake_failed', 'the secret of its guest daemon is lost');

  return { fresh, former: former === null || next === null ? [] : [former] };
}

/** Leaves the VM in a recoverable state, and resolves with the error for the caller. */
async function giveUp(
  parts: LifecycleParts,
  vm: OwnedVm,
  before: VmRecord,
  abort: AbortController,
  error: unknown,
  reason: string,
): Promise<unknown> {
  detach(vm);
  if (vm.ending !== null) return new HostError('superseded', 'a destroy overtook the wake', { cause: error });

  const closing = abort.signal.aborted;
  parts.log.warn({ vmId: vm.id, epoch: vm.record.epoch, err: error }, 'a VM did not wake');
  if (vm.record.continued && closing) {
    // The VM runs, as recorded: the next daemon finishes the wake.
    return abort.signal.reason;
  }
  if (vm.record.continued || (error instanceof BootFailed && !closing)) {
    await undoWake(parts, vm, 'dead', false, reason);
  } else {
    const status = before.status === 'dead' ? 'dead' : 'asleep';
    const { deathCode, reason: was } = before;
    if (error instanceof BootFailed) await releaseAttempt(parts, vm);

    vm.record = { ...vm.record, status, sizeAsked: null, ...(status === 'dead' ? { deathCode, reason: was } : {}) };
    await writeOrLog(parts, vm);
  }
  return closing ? abort.signal.reason : new HostError('wake_failed', reason, { cause: error });
}

/**
 * True if written; a failure is logged. Use it only where the next daemon treats the old and the
 * new record alike.
 */
async function writeOrLog(parts: LifecycleParts, vm: OwnedVm): Promise<boolean> {
  try {
    await parts.directory.write(vm.record);
    return true;
  } catch (error) {
    parts.log.error({ vmId: vm.id, err: error }, `the record of a VM was not written: ${boundedMessageOf(error)}`);
    return false;
  }
}

function timeoutMessage({ deadlines }: LifecycleParts, error: unknown): string {
  return `it was not awake within ${deadlines.wakeMs / 1_000} s: ${boundedMessageOf(error)}`;
}
