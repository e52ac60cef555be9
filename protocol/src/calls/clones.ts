// Calls that clone a repository into a VM.
import { z } from 'zod';
import {
  CLONE_BOX_LENGTH,
  CLONE_BRANCH_LENGTH,
  CLONE_KEY,
  CLONE_MAX_MIB,
  CLONE_MESSAGE_LENGTH,
  CLONE_OUTPUT_BYTES,
  CLONE_SECRET_LENGTH,
  CLONE_TIMEOUT_SECONDS,
  CLONE_URL_LENGTH,
} from '../guest-limits.ts';
import { deadlineOf, defineCall } from './define.ts';

/** Limit of the response, without its space every ten seconds. */
export const CLONE_ANSWER_MAX_BYTES = 6 * CLONE_MESSAGE_LENGTH + 4_096;
const SPACES = CLONE_TIMEOUT_SECONDS.max / 10;

const sealingKey = z.string().regex(CLONE_KEY).describe('must be a key');

export const guestClone = z.strictObject({
  url: z
    .string()
    .max(CLONE_URL_LENGTH)
    .regex(/^https?:\/\/[^\s/@?#\\]+\/[^\s?#\\]+$/)
    .describe('must be an http or https URL without user name, query and fragment'),
  /** null: the default branch of the repository. */
  branch: z.string().min(1).max(CLONE_BRANCH_LENGTH).nullable(),
  credentials: z
    .strictObject({
      key: sealingKey,
      sender: sealingKey,
      box: z.string().min(1).max(CLONE_BOX_LENGTH),
    })
    .nullable(),
  timeoutSeconds: z.int().min(CLONE_TIMEOUT_SECONDS.min).max(CLONE_TIMEOUT_SECONDS.max),
  /** Limit of the fetched bytes. */
  maxMib: z.int().min(CLONE_MAX_MIB.min).max(CLONE_MAX_MIB.max),
});
export type GuestClone = z.infer<typeof guestClone>;

/**
 * Why a clone failed. `access_denied`: the server requires credentials, or other ones.
 * `folder_not_empty`: `/code` has an entry with a name that the repository has too. `failed`: any
 * other reason.
 */
export const cloneFailureCode = z.enum([
  'repository_not_found',
  'access_denied',
  'branch_not_found',
  'network',
  'disk_full',
  'too_large',
  'timed_out',
  'folder_not_empty',
  'failed',
]);
export type CloneFailureCode = z.infer<typeof cloneFailureCode>;

/** `message`: git's last output, unfit to be shown as it is. */
export const guestCloneResult = z.discriminatedUnion('outcome', [
  z.object({ outcome: z.literal('cloned') }),
  z.object({ outcome: z.literal('failed'), code: cloneFailureCode, message: z.string().max(CLONE_MESSAGE_LENGTH) }),
]);
export type GuestCloneResult = z.infer<typeof guestCloneResult>;

/**
 * Clones the repository, with its whole history, into `/code`, as user `berth`. Git clones into a
 * folder beside it, which is moved into place when complete, once in the life of a VM. A repeated
 * call returns at once when the clone is done, and waits while it is in progress. A clone without
 * callers is ended some seconds later.
 * The credentials are sealed to the key of {@link cloneKey} (guest/src/clones/seal.ts): the daemon
 * cannot read them. Git gets them once, only for the host and path of the URL. A call for a pending
 * clone whose key is gone is broken off.
 */
export const guestCloneCall = defineCall({
  name: 'clone',
  target: 'guest',
  method: 'POST',
  path: '/clone',
  body: guestClone,
  // A URL and a branch, with every character as a six byte JSON escape, and the longest box.
  requestBytes: 6 * 8_192 + 163_840,
  form: 'keepalive',
  response: guestCloneResult,
  responseBytes: CLONE_ANSWER_MAX_BYTES + SPACES,
  deadlineMs: 10_000,
  timeoutField: 'timeoutSeconds',
  marginMs: 5_000,
  since: 2,
});

export const guestCloneKey = z.object({ key: z.string().regex(CLONE_KEY) });

/**
 * Returns the key that seals the credentials of the next clone. The guest first starts a process
 * for the secret.
 */
export const cloneKey = defineCall({
  name: 'cloneKey',
  target: 'guest',
  method: 'POST',
  path: '/clone/key',
  form: 'json',
  response: guestCloneKey,
  responseBytes: 16_384,
  deadlineMs: 30_000,
  marginMs: 10_000,
  since: 2,
});

export const guestCloneEnd = z.object({});

/**
 * Ends a clone in progress, for example before a sleep. Returns once git and the secret are gone;
 * calls that wait for the clone are broken off. The deadline exceeds the time in which the guest
 * kills git.
 */
export const endClone = defineCall({
  name: 'endClone',
  target: 'guest',
  method: 'POST',
  path: '/clone/end',
  form: 'json',
  response: guestCloneEnd,
  responseBytes: 16_384,
  deadlineMs: 5_000,
  marginMs: 5_000,
  since: 2,
});

/**
 * `text`: what git wrote, unfit to be shown as it is; empty if none ran since the guest
 * daemon's start. `truncated`: it begins in the middle.
 */
export const guestCloneOutput = z.object({ text: z.string().max(CLONE_OUTPUT_BYTES), truncated: z.boolean() });
export type GuestCloneOutput = z.infer<typeof guestCloneOutput>;

/**
 * Returns the last output of git: in the clone in flight, whose last line may be partial, or in
 * the last one. The daemon keeps it in memory. Not a part of {@link guestCloneCall}, whose response
 * older control planes limit to fewer bytes.
 */
export const cloneOutput = defineCall({
  name: 'cloneOutput',
  target: 'pass-through',
  method: 'GET',
  path: '/clone/output',
  form: 'json',
  response: guestCloneOutput,
  responseBytes: 6 * CLONE_OUTPUT_BYTES + 4_096,
  deadlineMs: 2_000,
  marginMs: 1_500,
  repeatable: true,
  statuses: { 404: ['route_not_found', 'the guest daemon keeps no output of a clone'] },
  since: 11,
});

const cloneCredentials = z.strictObject({
  username: z.string().min(1).max(CLONE_SECRET_LENGTH),
  token: z.string().min(1).max(CLONE_SECRET_LENGTH),
});

const vmCloneBody = guestClone.extend({ credentials: cloneCredentials.nullable() });
export type VmClone = z.infer<typeof vmCloneBody> & { epoch: number };

/**
 * Clones a repository into a `running` VM: {@link guestCloneCall} with plain credentials, which the
 * host daemon seals, and the guest's streamed response. A sleep or destroy ends the clone.
 */
export const clone = defineCall({
  name: 'clone',
  target: 'host',
  method: 'POST',
  path: '/vms/{vmId}/clone',
  fenced: true,
  body: vmCloneBody,
  // A URL, a branch and a secret with every character escaped.
  requestBytes: 256 * 1_024,
  form: 'keepalive',
  response: guestCloneResult,
  responseBytes: CLONE_ANSWER_MAX_BYTES + SPACES,
  deadlineMs: deadlineOf(cloneKey, 'guest') + guestCloneCall.deadlineMs + guestCloneCall.marginMs,
  timeoutField: 'timeoutSeconds',
  marginMs: 5_000,
  since: 2,
});
