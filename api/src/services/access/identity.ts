// The caller's user and orgs.
import { role as roleName, type Permission, type Role } from '@berth/contract/route/permissions.ts';
import { permissionsOf, type Actor } from '../../rules/access/access.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { lockUser, updateUser } from '../../store/people/accounts.ts';
import { findUser, listOrgsOfUser } from '../../store/people/identity.ts';
import type { OrgRow, UserRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';
import { recordInOrgs } from './records.ts';

export type { UserRow };

/** An org with the caller's role and permissions in it. */
export type CallerOrg = OrgRow & { role: Role; permissions: Permission[] };

/** The caller's user; for an API key, its creator. */
export async function getCaller(context: Pick<ServiceContext, 'db'>, actor: Actor): Promise<UserRow> {
  const user = await findUser(context.db, actor.userId);
  if (user === undefined) throw new CodedError('unauthenticated', "this credential's holder no longer has an account");
  return user;
}

/** Changes the name. The same name again changes nothing and is not recorded. */
export async function renameCaller(
  context: ServiceContext,
  actor: Extract<Actor, { kind: 'session' }>,
  name: string,
): Promise<UserRow> {
  return await context.db.transaction().execute(async (trx) => {
    await lockUser(trx, actor.userId);
    const before = await getCaller({ db: trx }, actor);
    if (before.name === name) return before;
    await updateUser(trx, actor.userId, { name });
    const subject = { kind: 'user', id: actor.userId } as const;
    const details = { changes: { name: { from: before.name, to: name } } };
    await recordInOrgs(trx, { userId: actor.userId, actor }, { kind: 'member_renamed', subject, details });
    return { ...before, name };
  });
}

/**
 * Orgs in which the caller can act. For an API key: its org alone, while its creator is a member.
 */
export async function listCallerOrgs(context: ServiceContext, actor: Actor): Promise<CallerOrg[]> {
  const rows = await listOrgsOfUser(context.db, actor.userId, actor.kind === 'api_key' ? actor.orgId : null);
  return rows.flatMap((org) => {
    // A role of another version grants nothing.
    const role = roleName.safeParse(org.role).data;
    return role === undefined ? [] : [forCaller(actor, org, role)];
  });
}

export function forCaller(actor: Actor, org: OrgRow, role: Role): CallerOrg {
  return { ...org, role, permissions: permissionsOf(actor, role, { isOperator: org.is_operator }) };
}
