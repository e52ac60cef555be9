// Calls of the host daemon that make a VM its own: identity, wake and size, and what a template
// needs. Their callers bring the deadline of the verb that they are a step of.
import { z } from 'zod';
import { defineCall } from './define.ts';

const SMALL_BYTES = 4_096;
const RESPONSE_BYTES = 16_384;
const DEADLINE_MS = 50_000;
const MARGIN_MS = 10_000;

/** Bearer secret of a VM: 32 random bytes, base64url. */
const secret = z.string().min(43).max(64);
/** Milliseconds since 1970, of the host's clock at the moment of sending. */
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
  /** In force from now on. */
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
  /** One OpenSSH host key pair (ed25519). */
  sshHostKey: z.strictObject({ privateKey: z.string().max(4_096), publicKey: z.string().max(1_024) }),
  /** Public key lines for the user `berth`; empty: nobody may sign in by ssh. */
  sshAuthorizedKeys: z.array(z.string().max(16_384)).max(16),
  ...guestSize.shape,
});
export type GuestIdentity = z.infer<typeof guestIdentity>;

/** Values that the guest reads back after it applied an identity. */
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
 * Gives a restored VM its identity. The daemon of a template has no secret and takes the first one
 * that is set; after that, the call needs the secret in force. Returns only when every part was
 * applied and read back; after a refusal with 500 the VM must not be used. The root file system is
 * grown to the disk when it is smaller.
 */
export const identity = defineCall({
  name: 'identity',
  target: 'guest',
  method: 'POST',
  path: '/identity',
  body: guestIdentity,
  requestBytes: 6 * 1_048_576 + 1_024,
  form: 'json',
  response: guestIdentityResult,
  responseBytes: RESPONSE_BYTES,
  deadlineMs: DEADLINE_MS,
  marginMs: MARGIN_MS,
  repeatable: true,
  since: 1,
});

export const guestTemplateResult = z.object({});

/**
 * Makes the daemon forget its secret: it is as before the first identity, with its code warm. Needs
 * the secret in force. Follows a rehearsal of {@link identity}, of a template before it is frozen
 * and of a VM before it waits in the pool.
 */
export const template = defineCall({
  name: 'template',
  target: 'guest',
  method: 'POST',
  path: '/template',
  form: 'json',
  response: guestTemplateResult,
  responseBytes: RESPONSE_BYTES,
  deadlineMs: DEADLINE_MS,
  marginMs: MARGIN_MS,
  repeatable: true,
  since: 1,
});

export const guestWake = z.strictObject({ secret, clockUnixMs, entropy, ...guestSize.shape });
export type GuestWake = z.infer<typeof guestWake>;

/** What the guest reads back from itself. */
export const guestSizeResult = z.object({
  clockUnixMs: z.int(),
  vcpu: z.int().min(1),
  memoryMib: z.int().min(1),
  diskGib: z.number().positive(),
});
export type GuestSizeResult = z.infer<typeof guestSizeResult>;

/**
 * Follows the restore of a snapshot, or the boot of a disk that had an identity. The names and keys
 * of the VM stay; its clock is set, its generators are reseeded, the secret is replaced, every TCP
 * connection that leaves the VM is aborted (their other ends are long gone), and it is brought to
 * the size given. Needs the secret in force before, or the one given (a call that is repeated);
 * after a boot there is none in force. Refused as {@link identity} is.
 */
export const wake = defineCall({
  name: 'wake',
  target: 'guest',
  method: 'POST',
  path: '/wake',
  body: guestWake,
  // Small, because the caller may not have shown the secret yet.
  requestBytes: SMALL_BYTES,
  form: 'json',
  response: guestSizeResult,
  responseBytes: RESPONSE_BYTES,
  deadlineMs: DEADLINE_MS,
  marginMs: MARGIN_MS,
  repeatable: true,
  since: 1,
});

/**
 * Brings online what the host has plugged in: waits for it, bounded, and reads back. Returns when
 * the VM has at least the size given and exactly the vCPUs; otherwise it is refused with 500 and
 * what the VM has in the message.
 */
export const size = defineCall({
  name: 'size',
  target: 'guest',
  method: 'POST',
  path: '/size',
  body: guestSize,
  requestBytes: SMALL_BYTES,
  form: 'json',
  response: guestSizeResult,
  responseBytes: RESPONSE_BYTES,
  deadlineMs: DEADLINE_MS,
  marginMs: MARGIN_MS,
  repeatable: true,
  since: 1,
});

export const guestHealth = z.object({ ok: z.literal(true), version: z.string().max(64), uptimeSeconds: z.number() });
export type GuestHealth = z.infer<typeof guestHealth>;

/** Returns when the daemon can run commands. Needs the secret once one is set. */
export const health = defineCall({
  name: 'health',
  target: 'guest',
  method: 'GET',
  path: '/health',
  form: 'json',
  response: guestHealth,
  responseBytes: RESPONSE_BYTES,
  deadlineMs: DEADLINE_MS,
  marginMs: MARGIN_MS,
  repeatable: true,
  since: 1,
});
