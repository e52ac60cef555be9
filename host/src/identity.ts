// What makes a restored machine its own: name, machine-id, ssh host key, secret, random bytes and the time. Made here, applied by the guest,
// read back and compared. Fails closed: a machine whose identity was not confirmed in every part must not be used.
import { randomBytes } from 'node:crypto';
import { guestIdentityResult, type GuestIdentity, type GuestIdentityResult } from '@berth/protocol/guest.ts';
import type { VmSpec } from '@berth/protocol/host.ts';
import type { GuestClient } from './guest/client.ts';
import { HostError } from './host-error.ts';
import { makeSshHostKey } from './ssh-host-key.ts';

/** The guest's clock may differ from ours by the time its answer took plus this. */
const CLOCK_TOLERANCE_MS = 1_000;
/** The kernel keeps part of the memory for itself before it counts (crash kernel, page tables, firmware). */
const MEMORY_SHARE = 0.85;
/** File system overhead: journal, inode tables. */
const DISK_SHARE = 0.9;

/** Everything but the time, which is taken at the moment of sending. */
export type Identity = Omit<GuestIdentity, 'clockUnixMs'>;

export function makeGuestSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** Fresh for each VM; no two machines from one template share any of it. */
export function makeIdentity(spec: VmSpec, secret: string): Identity {
  return {
    secret,
    hostname: spec.hostname,
    machineId: randomBytes(16).toString('hex'),
    entropy: randomBytes(64).toString('base64'),
    sshHostKey: makeSshHostKey(`root@${spec.hostname}`),
    sshAuthorizedKeys: spec.sshAuthorizedKeys,
    vcpu: spec.vcpu,
    memoryMib: spec.memoryMib,
    diskGib: spec.diskGib,
  };
}

/**
 * Gives the guest its identity as soon as it accepts a connection, and checks what it reads back. When this resolves, the client carries the secret and
 * the guest is as the spec says.
 */
export async function giveIdentity(
  client: GuestClient,
  identity: Identity,
  signal: AbortSignal,
  deadlineMs: number,
): Promise<GuestIdentityResult> {
  const startedMs = performance.now();
  await client.reach({ signal, deadlineMs });
  const sentUnixMs = Date.now();
  const sentMs = performance.now();
  const body: GuestIdentity = { ...identity, clockUnixMs: sentUnixMs };
  const seen = await client.json({
    method: 'POST',
    path: '/identity',
    body,
    answer: guestIdentityResult,
    signal,
    deadlineMs: Math.max(1, Math.ceil(deadlineMs - (sentMs - startedMs))),
  });
  const fault = faultIn(seen, body, performance.now() - sentMs);
  if (fault !== null) {
    throw new HostError('guest_unreachable', `the guest did not take its identity: ${fault}`);
  }
  client.useSecret(identity.secret);
  return seen;
}

/** What differs between what the guest reads back and what it was told; null when it is as told. */
export function faultIn(seen: GuestIdentityResult, told: GuestIdentity, tookMs: number): string | null {
  if (seen.hostname !== told.hostname) {
    return `its hostname is '${seen.hostname}', not '${told.hostname}'`;
  }
  if (seen.machineId !== told.machineId) {
    return 'its machine-id is another';
  }
  // It set the clock after we sent and read it before we got the answer.
  const aheadMs = seen.clockUnixMs - told.clockUnixMs;
  if (aheadMs < -CLOCK_TOLERANCE_MS || aheadMs > tookMs + CLOCK_TOLERANCE_MS) {
    return `its clock is ${Math.round(aheadMs)} ms from the host's`;
  }
  if (seen.vcpu !== told.vcpu) {
    return `it sees ${seen.vcpu} vCPUs, not ${told.vcpu}`;
  }
  if (seen.memoryMib < told.memoryMib * MEMORY_SHARE) {
    return `it sees ${seen.memoryMib} MiB of memory, not ${told.memoryMib}`;
  }
  if (seen.diskGib < told.diskGib * DISK_SHARE) {
    return `it sees a disk of ${seen.diskGib} GiB, not ${told.diskGib}`;
  }
  return null;
}
