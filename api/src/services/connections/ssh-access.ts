// Facts for ssh clients: the sandbox's host key, which its host assigned and keeps, and the
// fingerprint of the authorised key.
import { createHash } from 'node:crypto';
import type { SshAccess } from '@berth/contract/connections/ssh.ts';
import { CodedError } from '../../rules/coded-error.ts';
import type { LocatedSandboxRow } from '../../store/sandboxes/sandboxes.ts';
import type { ServiceContext } from '../context/context.ts';
import { explainHostFailure } from '../hosts/failure.ts';
import { requireLegal } from '../../rules/sandboxes/action.ts';

/** Throws `sandbox_state_conflict`, `sandbox_unreachable` or `host_unavailable`. Wakes nothing. */
export async function sshAccess(
  context: ServiceContext,
  sandbox: LocatedSandboxRow,
  signal: AbortSignal,
): Promise<SshAccess> {
  requireLegal('ssh_access', sandbox.status);
  // The sandbox failed before a host was chosen.
  if (sandbox.host_url === null)
    throw new CodedError('sandbox_state_conflict', `the sandbox is ${sandbox.status} and has no VM`);
  try {
    const { publicKey } = await context.hosts.at(sandbox.host_url).sshHostKey(sandbox.id, { signal });
    const { ssh_public_key: authorized } = sandbox;
    return {
      user: 'berth',
      hostKey: publicKey,
      authorizedKeyFingerprint: authorized === null ? null : fingerprintOf(authorized),
    };
  } catch (error) {
    throw await explainHostFailure(context, sandbox.id, 'ssh_access', error);
  }
}

/** Fingerprint of a public key line, in OpenSSH's format. */
function fingerprintOf(line: string): string {
  const [, material = ''] = line.split(/ +/);
  const digest = createHash('sha256').update(Buffer.from(material, 'base64')).digest('base64');
  return `SHA256:${digest.replace(/=+$/, '')}`;
}
