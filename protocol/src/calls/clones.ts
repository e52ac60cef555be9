// Calls that clone a repository into a VM.
import { z } from 'zod';
import {
  CLONE_BOX_LENGTH,
  CLONE_BRANCH_LENGTH,
  CLONE_KEY,
  CLONE_MAX_MIB,
  CLONE_MESSAGE_LENGTH,
  CLONE_SECRET_LENGTH,
  CLONE_TIMEOUT_SECONDS,
  CLONE_URL_LENGTH,
} from '../guest-limits.ts';
import { deadlineOf, defineCall } from './define.ts';

/** Limit of the response, but for a space every ten seconds. */
export const CLONE_ANSWER_MAX_BYTES = 6 * CLONE_MESSAGE_LENGTH + 4_096;
const SPACES = CLONE_TIMEOUT_SECONDS.max / 10;

const sealingKey = z.string().regex(CLONE_KEY).describe('must be a key');

export const guestClone = z.strictObject({
  url: z
    .string()
    .max(CLONE_URL_LENGTH)
    .regex(/^https?:\/\/[^\s/@?#\\]+\/[^\s?#\\]+$/)
    .describe('must be an http or https URL without user name, query and fragment'),
  /** null: the one that the repository says. */
  branch: z.string().min(1).max(CLONE_BRANCH_LENGTH).nullable(),
  credentials: z
    .strictObject({
      key: sealingKey,
      sender: sealingKey,
      box: z.string().min(1).max(CLONE_BOX_LENGTH),
    })
    .nullable(),
  timeoutSeconds: z.int().min(CLONE_TIMEOUT_SECONDS.min).max(CLONE_TIMEOUT_SECONDS.max),
  /** Most that is fetched. */
  maxMib: z.int().min(CLONE_MAX_MIB.min).max(CLONE_MAX_MIB.max),
});
export type GuestClone = z.infer<typeof guestClone>;

/**
 * Why a clone failed. `access_denied`: the server wants credentials, or other ones.
 * `folder_not_empty`: `/code` has something of a name that the repository has too. `failed`: none
 * of the others.
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

/** `message`: the last words of git, unfit to be shown as they are. */
export const guestCloneResult = z.discriminatedUnion('outcome', [
  z.object({ outcome: z.literal('cloned') }),
  z.object({ outcome: z.literal('failed'), code: cloneFailureCode, message: z.string().max(CLONE_MESSAGE_LENGTH) }),
]);
export type GuestCloneResult = z.infer<typeof guestCloneResult>;

/**
 * Makes the repository, with its whole history, the content of `/code`, as user `berth`. It is
 * cloned into a folder beside that content and moved into place when complete, once in the life of
 * a VM: a call that finds it done returns at once, one that finds it under way waits for it. A
 * clone whose callers are all gone is ended some seconds later. The credentials are sealed to the
 * key of {@link cloneKey} (guest/src/clones/seal.ts): the daemon cannot read them. They are given
 * out once, to git, for the host and path of the URL alone. A call whose key is forgotten, of a
 * clone that is still to be made, is broken off.
 */
export const guestCloneCall = defineCall({
  name: 'clone',
  target: 'guest',
  method: 'POST',
  path: '/clone',
  body: guestClone,
  // A URL and a branch, every character as a six byte JSON escape, and the longest box.
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
 * Returns the key to which the credentials of a clone that comes soon are sealed. The guest starts
 * a process for the secret first.
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
 * Ends a clone under way, as before a sleep. Returns once git is gone and the secret with it; calls
 * that wait for the clone are broken off. The deadline is longer than the guest takes to kill git.
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

const cloneCredentials = z.strictObject({
  username: z.string().min(1).max(CLONE_SECRET_LENGTH),
  token: z.string().min(1).max(CLONE_SECRET_LENGTH),
});

const vmCloneBody = guestClone.extend({ credentials: cloneCredentials.nullable() });
export type VmClone = z.infer<typeof vmCloneBody> & { epoch: number };

/**
 * Clones a repository into a VM that is `running`: {@link guestCloneCall} with the credentials in
 * plain, which the host daemon seals, and the streamed response of the guest. A sleep ends it, and
 * so does a destroy.
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
