// File size limit of a jailed QEMU: its disk plus qcow2 tables. Set at the start (jail.ts) and
// raised when the disk grows. QEMU cannot raise it: the jail's filter blocks the calls
// (seccomp.ts). Only the soft limit is set, because root without CAP_SYS_RESOURCE could not raise a
// hard one.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { DriverError } from '../../driver.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { isSame } from '@berth/os/process-identity.ts';

const GIB = 2 ** 30;
/** A qcow2 file needs less than a thousandth of the disk size for tables. */
const TABLES_GIB = 1;
const PROGRAM_DEADLINE_MS = 10_000;

const run = promisify(execFile);

/** The limit in bytes for a disk of this size. */
export function fileSizeLimit(diskGib: number): number {
  return (diskGib + TABLES_GIB) * GIB;
}

/**
 * Sets the limit of a running QEMU, acting as QEMU's user, who may change limits of that user's
 * processes. Rejects with {@link DriverError}.
 */
export async function allowFileSize(
  process: ProcessIdentity,
  uid: number,
  diskGib: number,
  signal: AbortSignal,
): Promise<void> {
  if (!(await isSame(process))) throw new DriverError(`the QEMU process ${process.pid} has exited`);

  try {
    const asUser = [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'];
    const set = ['prlimit', `--pid=${process.pid}`, `--fsize=${fileSizeLimit(diskGib)}:`];
    await run('setpriv', [...asUser, ...set], { signal, timeout: PROGRAM_DEADLINE_MS });
  } catch (error) {
    signal.throwIfAborted();
    throw new DriverError(
      `could not set QEMU's file size limit for a disk of ${diskGib} GiB: ${(error as Error).message}`,
      {
        cause: error,
      },
    );
  }
}
