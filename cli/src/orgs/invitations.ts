// `berth org invite`, `invitations` and `revoke-invitation`. The emailed link accepts an
// invitation.
import type { Role } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { plainText } from '../output/plain-text.ts';
import { since, until } from '../output/time.ts';
import { checkResourceId } from '../service/resource-id.ts';
import type { Input } from '../program/command-spec.ts';

export async function invite(
  { connect, out, signal }: CliContext,
  { args: [email = ''], options: { role } }: Input<{ role?: Role }>,
): Promise<void> {
  const { berth, orgId } = await connect();
  const body = { email, ...(role === undefined ? {} : { role }) };
  const answer = await berth.raw.createInvitation({ path: { orgId: await orgId() }, body, signal });
  if (out.json) return out.object(answer);
  const { invitation } = answer;
  out.line(invitation.id);
  out.note(
    `invited ${plainText(invitation.email)} as ${invitation.role}; ` +
      `the emailed link expires ${until(invitation.expiresAt)}`,
  );
}

export async function listInvitations({ connect, out, signal }: CliContext): Promise<void> {
  const { berth, orgId } = await connect();
  const answer = await berth.raw.listInvitations({ path: { orgId: await orgId() }, signal });
  if (out.json) return out.object(answer);
  out.table(
    [
      { title: 'id', value: ({ id }) => id, whole: true },
      { title: 'email', value: ({ email }) => email },
      { title: 'role', value: ({ role }) => role },
      { title: 'sent', value: ({ sentAt }) => (sentAt === null ? 'not yet' : since(sentAt)) },
      { title: 'expires', value: ({ expiresAt }) => until(expiresAt) },
    ],
    answer.invitations,
    'no pending invitations',
  );
}

export async function revokeInvitation({ connect, out, signal }: CliContext, { args: [typed] }: Input): Promise<void> {
  const { berth, orgId } = await connect();
  const invitationId = checkResourceId('invitation', typed);
  const answer = await berth.raw.revokeInvitation({ path: { orgId: await orgId(), invitationId }, signal });
  if (out.json) out.object(answer);
  else out.line(`revoked the invitation of ${plainText(answer.invitation.email)}`);
}
