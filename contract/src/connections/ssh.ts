// What an ssh client has to know of a sandbox before its first connection (tunnel.ts carries it):
// as whom it signs in, with which key, and whom it has to find there.
import { z } from 'zod';
import { defineRoute } from '../route/route.ts';
import { sandboxParams } from '../sandboxes/sandboxes.ts';

/**
 * A host key as a line of `known_hosts` has it after the name: its kind and its material, without a
 * comment.
 */
const hostKeyLine = z.string().regex(/^ssh-ed25519 [A-Za-z0-9+/]{68}$/);

export const sshAccess = z.strictObject({
  user: z.literal('berth'),
  /**
   * The sandbox's own, from its create to its end, whether it sleeps or wakes: another one there is
   * somebody else.
   */
  hostKey: hostKeyLine,
  /**
   * Of the `sshPublicKey` it was made with, as `ssh-keygen -l` shows it; null: it was made without,
   * and no ssh server runs in it.
   */
  authorizedKeyFingerprint: z.string().nullable(),
});
export type SshAccess = z.infer<typeof sshAccess>;

export const getSshAccess = defineRoute({
  name: 'getSshAccess',
  summary: 'The host key of the sandbox and the fingerprint of the key that may sign in by ssh, also while it sleeps',
  method: 'GET',
  path: '/v1/sandboxes/{sandboxId}/ssh',
  auth: ['session', 'api_key'],
  permission: 'sandbox.connect',
  request: { params: sandboxParams },
  response: { status: 200, body: z.strictObject({ ssh: sshAccess }) },
  errors: ['sandbox_state_conflict', 'sandbox_unreachable', 'host_unavailable'],
  activity: null,
  published: false,
});
