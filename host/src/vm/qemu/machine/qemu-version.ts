// The installed QEMU: its version and what follows from it. Must not decide what to do without one;
// that is set-up's.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { DriverError } from '../../driver.ts';

/** In the jail too: /usr is bound there. */
export const QEMU_PROGRAM = '/usr/bin/qemu-system-x86_64';

/**
 * Older ones can map a template only read-write, so that an escaped tenant could write every
 * tenant's memory.
 */
const OLDEST = [8, 2] as const;
const DEADLINE_MS = 10_000;

export interface QemuVersion {
  /**
   * As it calls itself, with the distribution's revision: `10.0.2 (Debian
   * 1:10.0.2+ds-2+deb13u1~bpo12+1)`.
   */
  text: string;
  /** `-run-with user=` is there; before it was `-runas`. */
  runWithUser: boolean;
}

/**
 * Asks the installed QEMU. Rejects with {@link DriverError} when there is none or it is too old.
 */
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

/** Reads the first line of `qemu-system-x86_64 -version`. Throws {@link DriverError}. */
export function parseQemuVersion(output: string): QemuVersion {
  const match = /^QEMU emulator version ((\d+)\.(\d+)\.\S+(?: \([^)]*\))?)/.exec(output);
  const [, text, major, minor] = match ?? [];
  if (text === undefined)
    throw new DriverError(`${QEMU_PROGRAM} answers with an unknown version: ${output.slice(0, 200)}`);

  const atLeast = (wantedMajor: number, wantedMinor: number): boolean =>
    Number(major) > wantedMajor || (Number(major) === wantedMajor && Number(minor) >= wantedMinor);
  if (!atLeast(...OLDEST)) {
    throw new DriverError(
      `QEMU ${text} is installed; ${OLDEST.join('.')} or newer is needed (Debian 12: from bookworm-backports)`,
    );
  }

  return { text, runWithUser: atLeast(9, 1) };
}
