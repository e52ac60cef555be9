// The names and keys that a VM was given when it was made, given again to a machine that was booted
// from a disk on which they never arrived: the guest does not wait for its disk when it takes them.
// Must not touch a disk that has them: what else changed on it is the tenant's doing.
import { exec } from '@berth/protocol/calls/exec.ts';
import type { Amounts } from '../admission.ts';
import type { GuestClient } from '../../guest/client.ts';
import { messageOf } from '../host-error.ts';
import { giveIdentity, makeIdentity } from '../../guest/identity.ts';
import type { LifecycleParts, OwnedVm } from '../owned/owned-vm.ts';

const HOST_KEY = '/etc/ssh/ssh_host_ed25519_key';
/** What was not written in time is another's, empty or not there. */
const READ = { command: `cat /etc/machine-id && test -s ${HOST_KEY} && test -s ${HOST_KEY}.pub`, timeoutSeconds: 60 };

/**
 * For a machine that was booted from its disk and has taken `secret`. Another machine-id is that of
 * the template, or of the time when the machine waited in the pool; with its own, the host key may
 * still be missing. Rejects when it does not take its names: it must not be used then. A guest that
 * cannot say keeps what it has.
 */
export async function nameBootedMachine(
  { directory, log, deadlines }: LifecycleParts,
  vm: OwnedVm,
  guest: GuestClient,
  { secret, size, signal }: { secret: string; size: Amounts; signal: AbortSignal },
): Promise<void> {
  const names = await directory.readNames(vm.id);
  if (names === null) {
    log.warn({ vmId: vm.id }, 'the names of a VM are not on record: a booted disk keeps those that it has');
    return;
  }
  let has: boolean;
  try {
    const { stdout, exitCode } = await guest.call(exec, { body: READ }, { signal });
    has = stdout.trim() === names.machineId && exitCode === 0;
  } catch (error) {
    signal.throwIfAborted();
    log.warn({ vmId: vm.id, err: error }, `a booted machine does not say what its names are: ${messageOf(error)}`);
    return;
  }
  if (!has) {
    log.warn({ vmId: vm.id }, 'the names of a VM are not on its disk, and are given again');
    const identity = makeIdentity({ ...vm.record.spec, ...size }, secret, names);
    await giveIdentity(guest, identity, signal, deadlines.wakeMs);
  }
}
