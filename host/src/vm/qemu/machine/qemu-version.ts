// Version of the installed QEMU and the features that follow from it. Setup handles a missing QEMU.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { DriverError } from '../../driver.ts';

/** Valid in the jail too, which binds /usr. */
export const QEMU_PROGRAM = '/usr/bin/qemu-system-x86_64';

/**
 * Older versions map a template read-write only: an escaped tenant could write every tenant's
 * memory.
 */
const OLDEST = [8, 2] as const;
const DEADLINE_MS = 10_000;

export interface QemuVersion {
  /**
   * Version text with the distribution's revision: `10.0.2 (Debian 1:10.0.2+ds-2+deb13u1~bpo12+1)`.
   */
  text: string;
  /** Supports `-run-with user=`; older versions have `-runas`. */
  runWithUser: boolean;
}

/** Queries the installed QEMU. Rejects with {@link DriverError} if it is missing or too old. */
export async function readQemuVersion(): Promise<QemuVersion> {
  let output: string;
  try {
    output = (await promisify(execFile)(QEMU_PROGRAM, ['-version'], { timeout: DEADLINE_MS })).stdout;
  } catch (error) {
    throw new DriverError(`${QEMU_PROGRAM} does not run: ${(error as Error).message}; install qemu-system-x86`, {
      cause: error,
    });
  }
  return parseQemuVersion(output);
}

/** Parses the first line of `qemu-system-x86_64 -version`. Throws {@link DriverError}. */
export function parseQemuVersion(output: string): QemuVersion {
  const match = /^QEMU emulator version ((\d+)\.(\d+)\.\S+(?: \([^)]*\))?)/.exec(output);
  const [, text, major, minor] = match ?? [];
  if (text === undefined) throw new DriverError(`${QEMU_PROGRAM} returned an unknown version: ${output.slice(0, 200)}`);

  const atLeast = (wantedMajor: number, wantedMinor: number): boolean =>
    Number(major) > wantedMajor || (Number(major) === wantedMajor && Number(minor) >= wantedMinor);
  if (!atLeast(...OLDEST)) {
    throw new DriverError(
      `QEMU ${text} is installed; ${OLDEST.join('.')} or newer is needed (Debian 12: from bookworm-backports)`,
    );
  }

  return { text, runWithUser: atLeast(9, 1) };
}
