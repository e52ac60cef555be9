// The caller's user and orgs.
import type { Actor } from '../../rules/access/access.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { findUser, listOrgsOfUser, type MemberOrgRow } from '../../store/people/identity.ts';
import type { UserRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';

export type { MemberOrgRow, UserRow };

/** The caller's user; for an API key, its creator. */
export async function getCaller(context: ServiceContext, actor: Actor): Promise<UserRow> {
  const user = await findUser(context.db, actor.userId);
  if (user === undefined) throw new CodedError('unauthenticated', "this credential's holder no longer has an account");
  return user;
}

/**
 * Orgs in which the caller can act. For an API key: its org alone, while its creator is a member.
 */
export async function listCallerOrgs(context: ServiceContext, actor: Actor): Promise<MemberOrgRow[]> {
  return await listOrgsOfUser(context.db, actor.userId, actor.kind === 'api_key' ? actor.orgId : null);
}
