// Gives a restored VM its identity: name, machine-id, ssh host key, secret, random bytes and time.
// Generated here, applied by the guest, read back and compared. Fails closed: a VM without a fully
// confirmed identity must not be used.
import { randomBytes } from 'node:crypto';
import {
  identity as identityCall,
  size as sizeCall,
  wake as wakeCall,
  type GuestIdentity,
  type GuestIdentityResult,
  type GuestSize,
  type GuestSizeResult,
  type GuestWake,
} from '@berth/protocol/calls/identity.ts';
import type { VmSpec } from '@berth/protocol/host.ts';
import { GuestRefusal, type GuestClient } from './client.ts';
import { HostError } from '../vm/host-error.ts';
import { makeSshHostKey } from './ssh-host-key.ts';

/** The guest's clock may differ from the host's by the response time plus this. */
const CLOCK_TOLERANCE_MS = 1_000;
/**
 * Tolerated lateness of a woken guest's clock when the host has the response. Includes the latency
 * of the response, so that the clock itself is late by less.
 */
const CLOCK_LATE_MS = 200;
/** Longest compensation of the latency of a request. */
const CLOCK_AHEAD_MAX_MS = 2_000;
/** Limit of attempts: a guest on a busy host may stall between setting and reading its clock. */
const CLOCK_TRIES = 5;
/** Error message of such a guest. */
const CLOCK_REFUSAL = /the clock is -?\d+ ms off/;
/** The kernel reserves part of the memory (crash kernel, page tables, firmware). */
const MEMORY_SHARE = 0.85;
/** File system overhead: journal, inode tables. */
const DISK_SHARE = 0.9;

/** Everything but the time, which is read when sending. */
export type Identity = Omit<GuestIdentity, 'clockUnixMs'>;

/** Parts that a VM keeps for its whole life. */
export type Names = Pick<Identity, 'machineId' | 'sshHostKey'>;

export function makeGuestSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** Fresh for each VM; VMs of a template share none of it. */
function makeNames(hostname: string): Names {
  return { machineId: randomBytes(16).toString('hex'), sshHostKey: makeSshHostKey(`root@${hostname}`) };
}

export function makeIdentity(
  spec: VmSpec,
  secret: string,
  { machineId, sshHostKey } = makeNames(spec.hostname),
): Identity {
  return {
    secret,
    hostname: spec.hostname,
    machineId,
    entropy: randomBytes(64).toString('base64'),
    sshHostKey,
    sshAuthorizedKeys: spec.sshAuthorizedKeys,
    vcpu: spec.vcpu,
    memoryMib: spec.memoryMib,
    diskGib: spec.diskGib,
  };
}

/**
 * Gives the guest its identity as soon as it accepts a connection, and verifies the values read
 * back. Afterwards the client uses the secret and the guest matches the spec.
 */
export async function sendIdentity(
  client: GuestClient,
  identity: Identity,
  signal: AbortSignal,
  deadlineMs: number,
): Promise<GuestIdentityResult> {
  const left = timeLeft(signal, deadlineMs);
  await client.reach(left());
  const { seen, told, tookMs } = await untilClockIsSet(async () => {
    const sentMs = performance.now();
    const body: GuestIdentity = { ...identity, clockUnixMs: Date.now() };
    const answer = client.call(identityCall, { body }, left());
    // Once the guest has processed the call, it accepts only this secret.
    const result = await answer.finally(() => client.useSecret(identity.secret));
    return { seen: result, told: body, tookMs: performance.now() - sentMs };
  });
  const fault = faultIn(seen, told, tookMs);
  if (fault !== null) throw new HostError('guest_unreachable', `the guest did not apply its identity: ${fault}`);

  return seen;
}

/** Secrets of a waking VM: the next one, and those that may be current until it is accepted. */
export interface WakeSecrets {
  fresh: string;
  former: readonly string[];
}

/**
 * Refreshes a woken VM's clock, random numbers, secret and size, and verifies the values read back.
 * Afterwards the client uses the fresh secret. May be repeated after a crash, with either secret.
 */
export async function sendWake(
  client: GuestClient,
  secrets: WakeSecrets,
  size: GuestSize,
  signal: AbortSignal,
  deadlineMs: number,
): Promise<GuestSizeResult> {
  const left = timeLeft(signal, deadlineMs);
  await client.reach(left());
  for (const secret of secrets.former) {
    try {
      return await wakeAs(client, secret, secrets.fresh, size, left);
    } catch (error) {
      if (!(error instanceof GuestRefusal && error.status === 401)) throw error;
    }
  }
  return wakeAs(client, secrets.fresh, secrets.fresh, size, left);
}

async function wakeAs(
  client: GuestClient,
  known: string,
  fresh: string,
  { vcpu, memoryMib, diskGib }: GuestSize,
  left: () => CallOptions,
): Promise<GuestSizeResult> {
  client.useSecret(known);
  const { seen, told, tookMs } = await untilClockIsSet(async (aheadMs) => {
    const sentMs = performance.now();
    const entropy = randomBytes(64).toString('base64');
    const body: GuestWake = { secret: fresh, clockUnixMs: Date.now() + aheadMs, entropy, vcpu, memoryMib, diskGib };
    const answer = client.call(wakeCall, { body }, left());
    const result = await answer.finally(() => client.useSecret(fresh));
    return { seen: result, told: body, tookMs: performance.now() - sentMs };
  }, CLOCK_LATE_MS);
  const fault = clockFault(seen, told, tookMs) ?? sizeFault(seen, told);
  if (fault !== null) throw new HostError('guest_unreachable', `the guest did not apply its wake settings: ${fault}`);

  return seen;
}

/** Has the guest bring plugged resources online, and verifies the size read back. */
export async function sendSize(
  client: GuestClient,
  size: GuestSize,
  { signal, deadlineMs }: CallOptions,
): Promise<GuestSizeResult> {
  const { vcpu, memoryMib, diskGib } = size;
  const body: GuestSize = { vcpu, memoryMib, diskGib };
  const seen = await client.call(sizeCall, { body }, { signal, deadlineMs });
  const fault = sizeFault(seen, size);
  if (fault !== null) throw new HostError('guest_unreachable', `the guest does not have the requested size: ${fault}`);

  return seen;
}

/** Describes a difference between the applied and the intended identity; null if there is none. */
export function faultIn(seen: GuestIdentityResult, told: GuestIdentity, tookMs: number): string | null {
  if (seen.hostname !== told.hostname) return `its hostname is '${seen.hostname}', not '${told.hostname}'`;

  if (seen.machineId !== told.machineId) return 'its machine-id differs';

  return clockFault(seen, told, tookMs) ?? sizeFault(seen, told);
}

type Clock = Pick<GuestSizeResult, 'clockUnixMs'>;

/** Response of the guest, with the values sent and the response time. */
interface Answer<Seen, Told> {
  seen: Seen;
  told: Told;
  tookMs: number;
}

/**
 * Repeats the call while only the guest's clock is off, by its own or our check. The caller checks
 * the last response.
 * @param tell gets the milliseconds that the sent time must be ahead of the clock
 */
async function untilClockIsSet<Seen extends Clock, Told extends Clock>(
  tell: (aheadMs: number) => Promise<Answer<Seen, Told>>,
  toleratedMs = Infinity,
): Promise<Answer<Seen, Told>> {
  let aheadMs = 0;
  for (let tries = 1; ; tries += 1) {
    try {
      const answer = await tell(aheadMs);
      const { seen, told, tookMs } = answer;
      const lateMs = told.clockUnixMs - aheadMs + tookMs - seen.clockUnixMs;
      const isSet = clockFault(seen, told, tookMs) === null && Math.abs(lateMs) <= toleratedMs;
      if (isSet || tries === CLOCK_TRIES) return answer;
      // The first call waits for the guest to resume. The second tells how long both messages take;
      // without compensation a guest sets its clock late by the request's half.
      if (tries > 1) aheadMs = Math.round(Math.min(CLOCK_AHEAD_MAX_MS, Math.max(0, lateMs / 2)));
    } catch (error) {
      if (tries === CLOCK_TRIES || !(error instanceof GuestRefusal && CLOCK_REFUSAL.test(error.message))) throw error;
    }
  }
}

function clockFault(seen: Clock, told: Clock, tookMs: number): string | null {
  // The guest set the clock after the request and read it before the response.
  const aheadMs = seen.clockUnixMs - told.clockUnixMs;
  return aheadMs < -CLOCK_TOLERANCE_MS || aheadMs > tookMs + CLOCK_TOLERANCE_MS
    ? `its clock is ${Math.round(aheadMs)} ms from the host's`
    : null;
}

/** More memory or disk than requested is no fault: a guest does not always release it. */
function sizeFault(seen: GuestSize, told: GuestSize): string | null {
  if (seen.vcpu !== told.vcpu) return `it sees ${seen.vcpu} vCPUs, not ${told.vcpu}`;

  if (seen.memoryMib < told.memoryMib * MEMORY_SHARE)
    return `it sees ${seen.memoryMib} MiB of memory, not ${told.memoryMib}`;

  if (seen.diskGib < told.diskGib * DISK_SHARE) return `it sees a disk of ${seen.diskGib} GiB, not ${told.diskGib}`;

  return null;
}

interface CallOptions {
  signal: AbortSignal;
  deadlineMs: number;
}

/** Remaining time of a deadline shared by several calls. */
function timeLeft(signal: AbortSignal, deadlineMs: number): () => CallOptions {
  const startedMs = performance.now();
  return () => ({ signal, deadlineMs: Math.max(1, Math.ceil(deadlineMs - (performance.now() - startedMs))) });
}
