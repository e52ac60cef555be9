// Clones a repository in a VM's guest, within the VM's life: refuses late callers, and ends the
// clone before a sleep, so that the snapshot holds neither git nor its secret. The guest reports
// the outcome and the control plane stores it.
import type { Readable } from 'node:stream';
import { sealSecret, type CloneSecret, type SealedSecret } from '@berth/guest/clones/seal.ts';
import { cloneKey, endClone as endCloneCall, guestCloneCall, type VmClone } from '@berth/protocol/calls/clones.ts';
import { deadlineOf } from '@berth/protocol/calls/define.ts';
import { GuestRefusal, type GuestClient } from '../../guest/client.ts';
import { HostError } from '../host-error.ts';
import type { LifecycleParts, OwnedVm } from '../owned/owned-vm.ts';

/** An unresponsive guest is put to sleep all the same. */
const END_DEADLINE_MS = deadlineOf(endCloneCall, 'guest');

/** Resolves when the guest has accepted it, with its response as a stream. */
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
 * Encrypts the secret, so that the guest daemon forwards it unread: the daemon lives as long as the
 * VM, the secret must not.
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
    throw new HostError('guest_unreachable', "the guest's key for the credentials of a clone is invalid", {
      cause: error,
    });
  }
}

/**
 * Runs in the turn of a sleep, when no further clone is admitted. Never rejects: a sleep does not
 * wait for an unreachable guest.
 */
export async function endClone({ log }: LifecycleParts, vm: OwnedVm, signal: AbortSignal): Promise<void> {
  const { guest } = vm;
  if (!vm.clone.maybe || guest === null) return;

  const time = AbortSignal.any([signal, AbortSignal.timeout(END_DEADLINE_MS)]);
  const over = Promise.withResolvers<void>();
  time.addEventListener('abort', () => over.resolve(), { once: true });
  // An in-flight clone call must not reach the guest after its end.
  await Promise.race([vm.clone.accepted, over.promise]);
  try {
    await guest.call(endCloneCall, {}, { signal: time });
    vm.clone.maybe = false;
  } catch (error) {
    // A guest older than this feature has no clone.
    if (!(error instanceof GuestRefusal && error.status === 404))
      log.warn({ vmId: vm.id, err: error }, 'could not confirm the end of a clone before a sleep');
  }
}
