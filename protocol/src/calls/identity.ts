// Calls of the host daemon that give a VM its identity, wake it, size it, or prepare a template.
// Callers use the deadline of the surrounding verb.
import { z } from 'zod';
import { defineCall } from './define.ts';

const SMALL_BYTES = 4_096;

const guestCall = {
  target: 'guest',
  form: 'json',
  responseBytes: 16_384,
  deadlineMs: 50_000,
  marginMs: 10_000,
  repeatable: true,
  since: 1,
} as const;

/** Bearer secret of a VM: 32 random bytes, base64url. */
const secret = z.string().min(43).max(64);
/** Host clock when sent, in milliseconds since 1970. */
const clockUnixMs = z.int().min(1);
/** Random bytes for the guest's kernel pool and user-space generators. */
const entropy = z
  .string()
  .regex(/^[0-9a-zA-Z+/]{86}==$/)
  .describe('must be 64 bytes in base64');

/** Online vCPUs, memory after hotplug, and the size of the root disk. */
export const guestSize = z.strictObject({
  vcpu: z.int().min(1).max(64),
  memoryMib: z.int().min(128),
  diskGib: z.int().min(1),
});
export type GuestSize = z.infer<typeof guestSize>;

export const guestIdentity = z.strictObject({
  /** Replaces the secret from now on. */
  secret,
  hostname: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,62}$/)
    .describe('must be a DNS label in lower case'),
  machineId: z
    .string()
    .regex(/^[0-9a-f]{32}$/)
    .describe('must be 32 lowercase hex digits'),
  clockUnixMs,
  entropy,
  /** An OpenSSH host key pair (ed25519). */
  sshHostKey: z.strictObject({ privateKey: z.string().max(4_096), publicKey: z.string().max(1_024) }),
  /** Public keys for the user `berth`; empty: no ssh sign-in. */
  sshAuthorizedKeys: z.array(z.string().max(16_384)).max(16),
  ...guestSize.shape,
});
export type GuestIdentity = z.infer<typeof guestIdentity>;

/** Values read back by the guest after it applied an identity. */
export const guestIdentityResult = z.object({
  hostname: z.string().max(64),
  machineId: z.string().max(64),
  clockUnixMs: z.int(),
  vcpu: z.int().min(1),
  memoryMib: z.int().min(1),
  diskGib: z.number().positive(),
});
export type GuestIdentityResult = z.infer<typeof guestIdentityResult>;

/**
 * Gives a restored VM its identity. A template's daemon has no secret and accepts the first one;
 * after that, the call requires the current secret. Returns only when every part was applied and
 * read back; after a 500 the VM must not be used. Grows a root file system that is smaller than the
 * disk.
 */
export const identity = defineCall({
  ...guestCall,
  name: 'identity',
  method: 'POST',
  path: '/identity',
  body: guestIdentity,
  requestBytes: 6 * 1_048_576 + 1_024,
  response: guestIdentityResult,
});

export const guestTemplateResult = z.object({});

/**
 * Makes the daemon forget its secret, as before the first identity, with its code warm. Requires
 * the current secret. Follows a rehearsal of {@link identity}: of a template before it is frozen,
 * of a VM before it joins the pool.
 */
export const template = defineCall({
  ...guestCall,
  name: 'template',
  method: 'POST',
  path: '/template',
  response: guestTemplateResult,
});

export const guestWake = z.strictObject({ secret, clockUnixMs, entropy, ...guestSize.shape });
export type GuestWake = z.infer<typeof guestWake>;

/** Sizes read back by the guest. */
export const guestSizeResult = z.object({
  clockUnixMs: z.int(),
  vcpu: z.int().min(1),
  memoryMib: z.int().min(1),
  diskGib: z.number().positive(),
});
export type GuestSizeResult = z.infer<typeof guestSizeResult>;

/**
 * Follows the restore of a snapshot, or the boot of a disk with an identity. Names and keys stay.
 * The guest sets the clock, reseeds its generators, replaces the secret and applies the given size.
 * Every TCP connection that leaves the VM is aborted, as its peer is long gone. Requires the
 * previous secret, or the given one in a repeated call; after a boot none is set. Fails like {@link
 * identity}.
 */
export const wake = defineCall({
  ...guestCall,
  name: 'wake',
  method: 'POST',
  path: '/wake',
  body: guestWake,
  // Small, because the caller may be unauthenticated so far.
  requestBytes: SMALL_BYTES,
  response: guestSizeResult,
});

/**
 * Brings hot-plugged resources online: waits for them, bounded, and reads back. Returns when the VM
 * has at least the given size and exactly the given vCPUs. Otherwise fails with 500 and the actual
 * size.
 */
export const size = defineCall({
  ...guestCall,
  name: 'size',
  method: 'POST',
  path: '/size',
  body: guestSize,
  requestBytes: SMALL_BYTES,
  response: guestSizeResult,
});

export const guestHealth = z.object({
  ok: z.literal(true),
  version: z.string().max(64),
  /** Version of the guest protocol, {@link PROTOCOL_VERSION}; absent up to version 6. */
  protocol: z.int().min(1).optional(),
  uptimeSeconds: z.number(),
});
export type GuestHealth = z.infer<typeof guestHealth>;

/** Returns when the daemon can run commands. Requires the secret once set. */
export const health = defineCall({
  ...guestCall,
  name: 'health',
  method: 'GET',
  path: '/health',
  response: guestHealth,
});
