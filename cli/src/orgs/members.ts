// `berth org members`, `set-role` and `remove-member`.
import type { Role } from '@berth/sdk';
import type { Connection } from '../service/connection.ts';
import type { CliContext } from '../program/context.ts';
import { CliFailure } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { since } from '../output/time.ts';
import { confirmLoss } from '../interaction/prompt.ts';
import { isResourceId } from '../service/resource-id.ts';
import type { Input } from '../program/command-spec.ts';

export async function listMembers({ connect, out, signal }: CliContext): Promise<void> {
  const { berth, orgId } = await connect();
  const answer = await berth.raw.listMembers({ path: { orgId: await orgId() }, signal });
  if (out.json) return out.object(answer);
  out.table(
    [
      { title: 'user', value: ({ userId }) => userId, whole: true },
      { title: 'email', value: ({ email }) => email },
      { title: 'name', value: ({ displayName }) => displayName },
      { title: 'role', value: ({ role }) => role },
      { title: 'joined', value: ({ joinedAt }) => since(joinedAt) },
    ],
    answer.members,
    'no members',
  );
}

export async function setRole(
  { connect, out, signal }: CliContext,
  { args: [typed = '', role] }: Input,
): Promise<void> {
  const connection = await connect();
  const orgId = await connection.orgId();
  const userId = await memberOf(connection, orgId, typed, signal);
  const answer = await connection.berth.raw.updateMember({
    path: { orgId, userId },
    body: { role: role as Role },
    signal,
  });
  if (out.json) out.object(answer);
  else out.line(`${plainText(answer.member.email ?? userId)} now has the role ${answer.member.role}`);
}

export async function removeMember(
  context: CliContext,
  { args: [typed = ''], options }: Input<{ yes?: true }>,
): Promise<void> {
  const { connect, out, signal } = context;
  const connection = await connect();
  const orgId = await connection.orgId();
  const userId = await memberOf(connection, orgId, typed, signal);
  await confirmLoss(
    context,
    `Remove ${plainText(typed)} from the org ${orgId}? The API keys they created stop working.`,
    options,
  );
  const answer = await connection.berth.raw.removeMember({ path: { orgId, userId }, signal });
  if (out.json) out.object(answer);
  else out.line(`removed ${plainText(answer.member.email ?? userId)} from the org`);
}

/** Resolves a member id or email address to the id. */
async function memberOf({ berth }: Connection, orgId: string, typed: string, signal: AbortSignal): Promise<string> {
  if (isResourceId(typed)) return typed;
  const { members } = await berth.raw.listMembers({ path: { orgId }, signal });
  const member = members.find(({ email }) => email !== null && email.toLowerCase() === typed.toLowerCase());
  if (member !== undefined) return member.userId;
  throw new CliFailure(`the org has no member '${plainText(typed)}'`, {
    remedy: 'berth org members lists the members',
  });
}
