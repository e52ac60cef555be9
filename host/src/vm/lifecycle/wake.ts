// How a VM wakes: from its snapshot, processes and all, or by a boot of its disk when there is no
// snapshot or it is of no use. Each step is on disk before the next begins. Before the machine runs
// a failure leaves the VM as it was; from then on it is finished, by the next daemon if need be, or
// the VM is dead.
import type { Amounts } from '../admission.ts';
import { GuestClient, GuestRefusal } from '../../guest/client.ts';
import { HostError, messageOf } from '../host-error.ts';
import { giveWake, type WakeSecrets } from '../../guest/identity.ts';
import { crashPoint } from '../crash-point.ts';
import type { VmRecord } from '../directory/record.ts';
import type { RunningVm } from '../driver.ts';
import { sameSize } from '../owned/fencing.ts';
import { BootFailed, comeBack, releaseAttempt, type WakeOrder } from './come-back.ts';
import { diedSignal, letGo, markDead, startWatching } from './exit.ts';
import { changeSize } from './resize.ts';
import { nameBootedMachine } from './names.ts';
import { sizeOf, type LifecycleParts, type OwnedVm } from '../owned/owned-vm.ts';

/**
 * In the VM's turn: brings a VM that is asleep, or dead with its disk, to `running`. Otherwise it
 * is as before, or dead with its disk, and this rejects with `wake_failed`; when a destroy overtook
 * it, with `superseded`.
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
    const running = await comeBack(parts, vm, order, signal, abort.signal);
    await finishWake(parts, vm, running, [sizeOf(vm.record.spec)], signal);
  } catch (error) {
    const late = deadline.aborted && !abort.signal.aborted;
    throw await giveUp(parts, vm, before, abort, error, late ? lateness(parts, error) : messageOf(error));
  } finally {
    over?.();
  }
  const { woke, spec } = vm.record;
  parts.log.info(
    { vmId: vm.id, epoch: order.epoch, woke, size: sizeOf(spec), tookMs: Math.round(performance.now() - startedMs) },
    'a VM is awake',
  );
}

/**
 * In the VM's turn: finishes a wake that an earlier daemon cut short when the machine ran already.
 */
export async function resumeWake(
  parts: LifecycleParts,
  vm: OwnedVm,
  running: RunningVm,
  abort: AbortController,
): Promise<void> {
  const signal = AbortSignal.any([abort.signal, AbortSignal.timeout(parts.deadlines.wakeMs)]);
  const { spec, sizeAsked } = vm.record;
  try {
    // It may have got its new size already.
    await finishWake(parts, vm, running, sizeAsked === null ? [sizeOf(spec)] : [sizeOf(spec), sizeAsked], signal);
  } catch (error) {
    throw await giveUp(parts, vm, vm.record, abort, error, messageOf(error));
  }
  parts.log.info({ vmId: vm.id, epoch: vm.record.epoch }, 'a wake that was cut short is finished');
}

/**
 * Puts a wake of which nothing runs back to where it began: `asleep` with its snapshot untouched,
 * or `dead` with its disk. Never rejects. After a crash, `left` says that there may be something to
 * free.
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
  await writeOrSay(parts, vm);
}

/**
 * Everything from the first call of a machine that runs to the record `running`. `sizes`: what it
 * may have; the first that the guest confirms is taken. The record's own write may fail: it says
 * `waking`, and that its machine runs, so the next daemon finishes it again.
 */
async function finishWake(
  parts: LifecycleParts,
  vm: OwnedVm,
  running: RunningVm,
  sizes: readonly Amounts[],
  signal: AbortSignal,
): Promise<void> {
  const { directory, log } = parts;
  const watch = startWatching(parts, vm, running.process);
  const alive = AbortSignal.any([signal, diedSignal(watch, 'wake_failed')]);
  const guest = new GuestClient(running.guest);
  vm.guest = guest;
  const secrets = await secretsOf(parts, vm);
  const size = await wakeGuest(parts, guest, secrets, sizes, alive);
  vm.record = { ...vm.record, spec: { ...vm.record.spec, ...size } };
  if (vm.record.woke?.from === 'disk')
    await nameBootedMachine(parts, vm, guest, { secret: secrets.fresh, size, signal: alive });

  crashPoint('wake:identified');
  await directory.promoteNextSecret(vm.id);
  crashPoint('wake:secret-promoted');

  const { sizeAsked } = vm.record;
  if (sizeAsked !== null && !sameSize(size, sizeAsked)) {
    const { has, failure } = await changeSize(parts, vm, sizeAsked, alive);
    if (failure !== null) {
      log.warn(
        { vmId: vm.id, err: failure, has, sizeAsked },
        'a VM that woke does not have the size it was asked to have',
      );
    }

    vm.record = { ...vm.record, spec: { ...vm.record.spec, ...has } };
  }
  const death = { reason: null, deathCode: null, lastAliveUnixMs: null };
  vm.record = { ...vm.record, ...death, status: 'running', continued: false, sizeAsked: null };
  if (await writeOrSay(parts, vm)) {
    crashPoint('wake:running-recorded');
    await directory.removeSnapshot(vm.id).catch((error: unknown) => {
      log.warn({ vmId: vm.id, err: error }, `a spent snapshot was not removed: ${messageOf(error)}`);
    });
  }
  if (vm.ending !== null) throw new HostError('superseded', 'a destroy overtook the wake');
}

/** Resolves with the size that the guest confirmed. */
async function wakeGuest(
  parts: LifecycleParts,
  guest: GuestClient,
  secrets: WakeSecrets,
  sizes: readonly Amounts[],
  signal: AbortSignal,
): Promise<Amounts> {
  for (const [at, size] of sizes.entries()) {
    try {
      await giveWake(guest, secrets, size, signal, parts.deadlines.wakeMs);
      return size;
    } catch (error) {
      if (!(error instanceof GuestRefusal && error.status === 500 && at < sizes.length - 1)) throw error;
    }
  }
  throw new HostError('wake_failed', 'its size is not known');
}

/** Before the next secret is in force the guest knows the former; afterwards there is one only. */
async function secretsOf({ directory }: LifecycleParts, vm: OwnedVm): Promise<WakeSecrets> {
  const [former, next] = await Promise.all([directory.readSecret(vm.id), directory.readNextSecret(vm.id)]);
  const fresh = next ?? former;
  if (fresh === null) throw new HostError('wake_failed', 'the secret of its guest daemon is lost');

  return { fresh, former: former === null || next === null ? [] : [former] };
}

/**
 * Leaves the VM in a state to be found in, and resolves with what the caller of the wake is told.
 */
async function giveUp(
  parts: LifecycleParts,
  vm: OwnedVm,
  before: VmRecord,
  abort: AbortController,
  error: unknown,
  reason: string,
): Promise<unknown> {
  letGo(vm);
  if (vm.ending !== null) return new HostError('superseded', 'a destroy overtook the wake', { cause: error });

  const closing = abort.signal.aborted;
  parts.log.warn({ vmId: vm.id, epoch: vm.record.epoch, err: error }, 'a VM did not wake');
  if (vm.record.continued && closing) {
    // It runs, and the record says so: the next daemon finishes it.
    return abort.signal.reason;
  }
  if (vm.record.continued || (error instanceof BootFailed && !closing)) {
    await undoWake(parts, vm, 'dead', false, reason);
  } else {
    const status = before.status === 'dead' ? 'dead' : 'asleep';
    const { deathCode, reason: was } = before;
    if (error instanceof BootFailed) await releaseAttempt(parts, vm);

    vm.record = { ...vm.record, status, sizeAsked: null, ...(status === 'dead' ? { deathCode, reason: was } : {}) };
    await writeOrSay(parts, vm);
  }
  return closing ? abort.signal.reason : new HostError('wake_failed', reason, { cause: error });
}

/**
 * Whether it was written; what was not is logged. For a record that says the same to the next
 * daemon as the one before it.
 */
async function writeOrSay(parts: LifecycleParts, vm: OwnedVm): Promise<boolean> {
  try {
    await parts.directory.write(vm.record);
    return true;
  } catch (error) {
    parts.log.error({ vmId: vm.id, err: error }, `the record of a VM was not written: ${messageOf(error)}`);
    return false;
  }
}

function lateness({ deadlines }: LifecycleParts, error: unknown): string {
  return `it was not awake within ${deadlines.wakeMs / 1_000} s: ${messageOf(error)}`;
}
