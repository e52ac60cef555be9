// Who the caller is and in which orgs.
import type { Actor } from '../../rules/access/access.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { findUser, listOrgsOfUser, type MemberOrgRow } from '../../store/people/identity.ts';
import type { UserRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';

export type { MemberOrgRow, UserRow };

/** The caller's user; with an API key, its creator. */
export async function getCaller(context: ServiceContext, actor: Actor): Promise<UserRow> {
  const user = await findUser(context.db, actor.userId);
  if (user === undefined) throw new CodedError('unauthenticated', "this credential's holder no longer has an account");
  return user;
}

/**
 * The orgs the caller can act in: with an API key, the key's org alone, as long as its creator is a
 * member.
 */
export async function listCallerOrgs(context: ServiceContext, actor: Actor): Promise<MemberOrgRow[]> {
  return await listOrgsOfUser(context.db, actor.userId, actor.kind === 'api_key' ? actor.orgId : null);
}
