// Parameters of an ssh connection to a sandbox (through tunnel.ts): user, host key and authorized
// key.
import { z } from 'zod';
import { defineRoute } from '../route/route.ts';
import { sandboxParams } from '../sandboxes/sandboxes.ts';

/** Type and material of a host key, as in `known_hosts`, without a comment. */
const hostKeyLine = z.string().regex(/^ssh-ed25519 [A-Za-z0-9+/]{68}$/);

const sshAccess = z.strictObject({
  user: z.literal('berth'),
  /** Constant from create to destroy; a different key means a different server. */
  hostKey: hostKeyLine,
  /**
   * Fingerprint of the sandbox's `sshPublicKey`, in the format of `ssh-keygen -l`; null: created
   * without a key, so that no ssh server runs.
   */
  authorizedKeyFingerprint: z.string().nullable(),
});
export type SshAccess = z.infer<typeof sshAccess>;

export const getSshAccess = defineRoute({
  name: 'getSshAccess',
  summary: 'Returns the ssh host key of a sandbox and the fingerprint of its authorized key, also while it is asleep',
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
