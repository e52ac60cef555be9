// Resource limits of a jailed QEMU that grow with its VM: size of its files and its own memory. Set
// at the start (jail.ts) and changed with the VM's size. QEMU cannot raise them: the jail's filter
// blocks the calls (seccomp.ts). Only the soft limits are set, because root without
// CAP_SYS_RESOURCE could not raise a hard one.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { DriverError } from '../../driver.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { isSame } from '@berth/os/process-identity.ts';

const MIB = 2 ** 20;
const GIB = 2 ** 30;
/** A qcow2 file needs less than a thousandth of the disk size for tables. */
const TABLES_GIB = 1;
/** Beside the guest's memory: heap, and stacks of 8 MiB for up to 74 threads. */
const OWN_MIB = 1_024;
/** Without KVM also the translation buffer (machine.ts). */
const TRANSLATION_MIB = 512;
/** Address space that is not writable: libraries, and 64 MiB that a thread's heap reserves. */
const RESERVED_GIB = 16;
const PROGRAM_DEADLINE_MS = 10_000;

const run = promisify(execFile);

/** Part of a VM's size that limits QEMU, and whether QEMU translates the guest's code. */
export interface LimitedSize {
  memoryMib?: number;
  diskGib?: number;
  kvm: boolean;
}

/**
 * Arguments of `prlimit`. `data` limits what QEMU can take, because the filter refuses all other
 * anonymous memory. `as` limits the page tables of mappings that QEMU only reads.
 */
export function limitArguments({ memoryMib, diskGib, kvm }: LimitedSize): string[] {
  const limits: string[] = [];
  if (diskGib !== undefined) limits.push(`--fsize=${(diskGib + TABLES_GIB) * GIB}:`);
  if (memoryMib !== undefined) {
    const data = (memoryMib + OWN_MIB + (kvm ? 0 : TRANSLATION_MIB)) * MIB;
    limits.push(`--data=${data}:`, `--as=${data + RESERVED_GIB * GIB}:`);
  }
  return limits;
}

/**
 * Sets limits of a running QEMU, acting as QEMU's user, who may change limits of that user's
 * processes. Rejects with {@link DriverError}.
 */
export async function allowSize(
  process: ProcessIdentity,
  uid: number,
  size: LimitedSize,
  signal: AbortSignal,
): Promise<void> {
  if (!(await isSame(process))) throw new DriverError(`the QEMU process ${process.pid} has exited`);

  try {
    const asUser = [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'];
    const set = ['prlimit', `--pid=${process.pid}`, ...limitArguments(size)];
    await run('setpriv', [...asUser, ...set], { signal, timeout: PROGRAM_DEADLINE_MS });
  } catch (error) {
    signal.throwIfAborted();
    throw new DriverError(`could not set QEMU's limits for ${JSON.stringify(size)}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
