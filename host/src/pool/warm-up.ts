// Warms up a restored VM: runs the first calls of a real VM, twice, so that the emulator has
// translated that code and its pages are in memory. Leaves in force a secret that only this
// daemon's memory holds: nobody else on the host can call a waiting guest.
import { randomBytes } from 'node:crypto';
import { exec } from '@berth/protocol/calls/exec.ts';
import type { GuestClient } from '../guest/client.ts';
import { sendIdentity, makeGuestSecret, makeIdentity } from '../guest/identity.ts';
import { DriverError, type VmSize } from '../vm/driver.ts';

/** The second round still translates a little; a third changes nothing. */
const ROUNDS = 2;
/** A minimal command, and a typical first one of a user. */
const COMMANDS = ['true', 'uname -a; id; nproc; free -m; ls -la /'] as const;
const EXEC_SECONDS = 60;

/** Rejects if the guest fails a call: such a VM is useless. */
export async function warmUp(guest: GuestClient, size: VmSize, signal: AbortSignal, deadlineMs: number): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) await exercise(guest, size, signal, deadlineMs);
}

/** A round: a throw-away identity with a fresh secret, and commands. */
export async function exercise(
  guest: GuestClient,
  size: VmSize,
  signal: AbortSignal,
  deadlineMs: number,
): Promise<void> {
  const spec = { ...size, hostname: `waiting-${randomBytes(4).toString('hex')}`, sshAuthorizedKeys: [] };
  await sendIdentity(guest, makeIdentity(spec, makeGuestSecret()), signal, deadlineMs);
  for (const command of COMMANDS) {
    const { exitCode, stderr } = await guest.call(
      exec,
      { body: { command, timeoutSeconds: EXEC_SECONDS } },
      { signal },
    );
    if (exitCode !== 0)
      throw new DriverError(`"${command}" exited with ${exitCode} in a VM that warms up: ${stderr.slice(-500)}`);
  }
}
