// Members of an org: list, change roles, remove, leave. Changes of an org's memberships are
// serialised, and each is validated against the result of the previous one. Roles are never cached,
// so a change takes effect with the next request on every replica.
import type { PageQuery } from '@berth/contract/route/page.ts';
import { role as roleName, type Role } from '@berth/contract/route/permissions.ts';
import type { Actor } from '../../rules/access/access.ts';
import { requireFreshSignIn } from '../../rules/access/fresh-sign-in.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { needsFreshSignIn, permissionToChange, requireOwnerLeft } from '../../rules/orgs/membership.ts';
import { readInPages, type PageFields } from '../../rules/page.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import { isId } from '../../store/database/ids.ts';
import {
  countOwners,
  deleteMembership,
  findMember,
  listMembers as selectMembers,
  lockMemberships,
  updateRole,
  type MemberRow,
} from '../../store/orgs/memberships.ts';
import type { DatabaseTransaction } from '../../store/database/schema.ts';
import { requireOrgPermission } from '../access/access.ts';
import type { ServiceContext } from '../context/context.ts';
import { revokeOfFormerRole } from './invitations.ts';

export type { MemberRow };

export async function listMembers(
  context: ServiceContext,
  orgId: string,
  query: PageQuery,
): Promise<{ rows: MemberRow[]; fields: PageFields }> {
  return await readInPages('members', query, (page) => selectMembers(context.db, orgId, page));
}

/**
 * Changes a member's role; setting the current role records nothing. Revokes pending invitations
 * that the new role could not send.
 */
export async function updateMember(
  context: ServiceContext,
  actor: Actor,
  orgId: string,
  userId: string,
  role: Role,
): Promise<MemberRow> {
  return await context.db.transaction().execute(async (trx) => {
    const member = await lockMember(trx, orgId, userId);
    const change = { from: roleName.parse(member.role), to: role };
    await requireOrgPermission({ ...context, db: trx }, actor, orgId, permissionToChange(change));
    requireOwnerLeft(change, await countOwners(trx, orgId));
    if (change.from === change.to) return member;
    if (needsFreshSignIn(change)) requireFreshSignIn(actor, context.settings);
    await updateRole(trx, { orgId, userId, role });
    await insertActivity(trx, {
      orgId,
      actor,
      kind: 'member_role_changed',
      subject: { kind: 'user', id: userId },
      details: { userId, ...change },
    });
    await revokeOfFormerRole(trx, actor, { orgId, userId, role });
    return { ...member, role };
  });
}

/**
 * Deletes a membership and returns it. The person's API keys, session tokens and pending
 * invitations grant nothing in the org from now on.
 */
export async function removeMember(
  context: ServiceContext,
  actor: Actor,
  orgId: string,
  userId: string,
): Promise<MemberRow> {
  return await context.db.transaction().execute(async (trx) => {
    const member = await lockMember(trx, orgId, userId);
    await requireOrgPermission(
      { ...context, db: trx },
      actor,
      orgId,
      permissionToChange({ from: roleName.parse(member.role), to: null }),
    );
    return await endMembership(trx, actor, orgId, member, false);
  });
}

/** Deletes the caller's own membership, which needs no permission, and returns it. */
export async function leaveOrg(context: ServiceContext, actor: Actor, orgId: string): Promise<MemberRow> {
  return await context.db.transaction().execute(async (trx) => {
    await lockMemberships(trx, orgId);
    const member = await findMember(trx, orgId, actor.userId);
    // Removed concurrently, after the access decision.
    if (member === undefined) throw new CodedError('org_access_denied', 'you are no longer a member of the org');
    return await endMembership(trx, actor, orgId, member, true);
  });
}

async function endMembership(
  trx: DatabaseTransaction,
  actor: Actor,
  orgId: string,
  member: MemberRow,
  left: boolean,
): Promise<MemberRow> {
  const { user_id: userId, role } = member;
  requireOwnerLeft({ from: roleName.parse(role), to: null }, await countOwners(trx, orgId));
  await deleteMembership(trx, orgId, userId);
  await insertActivity(trx, {
    orgId,
    actor,
    kind: 'member_removed',
    subject: { kind: 'user', id: userId },
    details: { userId, role, left },
  });
  await revokeOfFormerRole(trx, actor, { orgId, userId, role: null });
  return member;
}

async function lockMember(trx: DatabaseTransaction, orgId: string, userId: string): Promise<MemberRow> {
  await lockMemberships(trx, orgId);
  const member = isId('user', userId) ? await findMember(trx, orgId, userId) : undefined;
  if (member === undefined) throw new CodedError('member_not_found', 'the org has no member with this userId');
  return member;
}
