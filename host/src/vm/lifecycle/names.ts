// Restores a VM's names and keys after a boot of its disk: the guest does not flush them when it
// receives them, so they may be missing. Must not touch a disk that has them: any other change is
// the tenant's.
import { exec } from '@berth/protocol/calls/exec.ts';
import type { VmSshHostKey } from '@berth/protocol/calls/vms.ts';
import type { Amounts } from '../admission.ts';
import type { GuestClient } from '../../guest/client.ts';
import { boundedMessageOf, HostError } from '../host-error.ts';
import { sendIdentity, makeIdentity } from '../../guest/identity.ts';
import type { LifecycleParts, OwnedVm } from '../owned/owned-vm.ts';

const HOST_KEY = '/etc/ssh/ssh_host_ed25519_key';
/** Files not flushed in time hold old values, are empty or missing. */
const READ = { command: `cat /etc/machine-id && test -s ${HOST_KEY} && test -s ${HOST_KEY}.pub`, timeoutSeconds: 60 };

/**
 * For a VM that was booted from its disk and has accepted `secret`. A different machine-id is that
 * of the template or of the VM's time in the pool; with the right one, the host key may still be
 * missing. Rejects if the guest does not accept its names: it must not be used then. A guest that
 * cannot report them keeps them.
 */
export async function nameBootedVm(
  { directory, log, deadlines }: LifecycleParts,
  vm: OwnedVm,
  guest: GuestClient,
  { secret, size, signal }: { secret: string; size: Amounts; signal: AbortSignal },
): Promise<void> {
  const names = await directory.readNames(vm.id);
  if (names === null) {
    log.warn({ vmId: vm.id }, 'no recorded names of a VM: a booted disk keeps its own');
    return;
  }
  let has: boolean;
  try {
    const { stdout, exitCode } = await guest.call(exec, { body: READ }, { signal });
    has = stdout.trim() === names.machineId && exitCode === 0;
  } catch (error) {
    signal.throwIfAborted();
    log.warn({ vmId: vm.id, err: error }, `could not read the names of a booted VM: ${boundedMessageOf(error)}`);
    return;
  }
  if (!has) {
    log.warn({ vmId: vm.id }, 'the names of a VM are missing on its disk; setting them again');
    const identity = makeIdentity({ ...vm.record.spec, ...size }, secret, names);
    await sendIdentity(guest, identity, signal, deadlines.wakeMs);
  }
}

/** Throws `vm_not_found` for a VM that never was `running`. */
export async function sshHostKeyOf(
  { directory }: LifecycleParts,
  id: string,
  vm: OwnedVm | undefined,
): Promise<VmSshHostKey> {
  const key = vm?.record.everRan === true ? await directory.readSshPublicKey(id) : null;
  if (key === null) throw new HostError('vm_not_found', `this host has no host key of a VM ${id}`);

  const [kind, material] = key.split(' ');
  return { publicKey: `${kind} ${material}` };
}
