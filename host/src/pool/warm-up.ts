// What a restored machine goes through before it waits: what the first moments of a VM will ask of
// it, twice. Its emulator has translated that code then and its pages are in memory. Leaves a
// secret in force that only this daemon knows, in memory alone: nobody else on the host can talk to
// a machine that waits.
import { randomBytes } from 'node:crypto';
import { exec } from '@berth/protocol/calls/exec.ts';
import type { GuestClient } from '../guest/client.ts';
import { giveIdentity, makeGuestSecret, makeIdentity } from '../guest/identity.ts';
import { DriverError, type VmSize } from '../vm/driver.ts';

/** The second still translates a little; a third changes nothing. */
const ROUNDS = 2;
/** The first is the shortest there is, the second what people try first. */
const COMMANDS = ['true', 'uname -a; id; nproc; free -m; ls -la /'] as const;
const EXEC_SECONDS = 60;

/** Rejects when the guest does not do as it is told: such a machine is of no use. */
export async function warmUp(guest: GuestClient, size: VmSize, signal: AbortSignal, deadlineMs: number): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) await exercise(guest, size, signal, deadlineMs);
}

/** One round: a throw-away identity under a fresh secret, and commands. */
export async function exercise(
  guest: GuestClient,
  size: VmSize,
  signal: AbortSignal,
  deadlineMs: number,
): Promise<void> {
  const spec = { ...size, hostname: `waiting-${randomBytes(4).toString('hex')}`, sshAuthorizedKeys: [] };
  await giveIdentity(guest, makeIdentity(spec, makeGuestSecret()), signal, deadlineMs);
  for (const command of COMMANDS) {
    const { exitCode, stderr } = await guest.call(
      exec,
      { body: { command, timeoutSeconds: EXEC_SECONDS } },
      { signal },
    );
    if (exitCode !== 0) {
      throw new DriverError(
        `"${command}" ended with exit code ${exitCode} in a machine that warms up: ${stderr.slice(-500)}`,
      );
    }
  }
}
