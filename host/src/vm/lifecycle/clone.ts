// The clone of a repository in a VM's guest, as far as the VM's life bears on it: a late caller is
// refused, and a sleep ends it first, so that neither git nor its secret is in the memory that is
// written down. What comes of it is the guest's to say and the control plane's to keep.
import type { Readable } from 'node:stream';
import { sealSecret, type CloneSecret, type SealedSecret } from '@berth/guest/clones/seal.ts';
import { cloneKey, endClone as endCloneCall, guestCloneCall, type VmClone } from '@berth/protocol/calls/clones.ts';
import { deadlineOf } from '@berth/protocol/calls/define.ts';
import { GuestRefusal, type GuestClient } from '../../guest/client.ts';
import { HostError } from '../host-error.ts';
import type { LifecycleParts, OwnedVm } from '../owned/owned-vm.ts';

/** A guest that does not answer by then is put to sleep all the same. */
const END_DEADLINE_MS = deadlineOf(endCloneCall, 'guest');

/** Resolves when the guest has accepted it, with its answer as a stream. */
export async function cloneInto(
  vm: OwnedVm,
  guest: GuestClient,
  clone: Omit<VmClone, 'epoch'>,
  signal: AbortSignal,
): Promise<Readable> {
  const accepted = sealed(guest, clone.credentials, signal).then((credentials) =>
    guest.stream(guestCloneCall, { body: { ...clone, credentials } }, { signal }),
  );
  vm.clone = { maybe: true, accepted: Promise.allSettled([vm.clone.accepted, accepted]) };
  return accepted;
}

/**
 * What the guest daemon passes on and cannot read: it lives as long as the machine, and the secret
 * is not to.
 */
async function sealed(
  guest: GuestClient,
  credentials: CloneSecret | null,
  signal: AbortSignal,
): Promise<SealedSecret | null> {
  if (credentials === null) return null;

  const { key } = await guest.call(cloneKey, {}, { signal });
  try {
    return sealSecret(key, credentials);
  } catch (error) {
    throw new HostError('guest_unreachable', "the guest's key for the credentials of a clone is none", {
      cause: error,
    });
  }
}

/**
 * In the turn of a sleep, when no further clone is let in. Never rejects: a guest that cannot be
 * asked is none that a sleep waits for.
 */
export async function endClone({ log }: LifecycleParts, vm: OwnedVm, signal: AbortSignal): Promise<void> {
  const { guest } = vm;
  if (!vm.clone.maybe || guest === null) return;

  const time = AbortSignal.any([signal, AbortSignal.timeout(END_DEADLINE_MS)]);
  const over = Promise.withResolvers<void>();
  time.addEventListener('abort', () => over.resolve(), { once: true });
  // A call that is on its way to the guest must not come after its end.
  await Promise.race([vm.clone.accepted, over.promise]);
  try {
    await guest.call(endCloneCall, {}, { signal: time });
    vm.clone.maybe = false;
  } catch (error) {
    // A guest of before there were clones has none.
    if (!(error instanceof GuestRefusal && error.status === 404))
      log.warn({ vmId: vm.id, err: error }, 'it is not known whether a clone was ended before a sleep');
  }
}
