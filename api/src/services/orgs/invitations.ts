// Invitations into an org: create, list, revoke, find, accept. A token proves access to the invited
// address's mail. Acceptance also requires that the address is the caller's. invitation-mail.ts
// builds the mail.
import { INVITATION_DAYS, INVITATIONS_PER_HOUR } from '@berth/contract/route/limits.ts';
import type { PageQuery } from '@berth/contract/route/page.ts';
import type { Role } from '@berth/contract/route/permissions.ts';
import type { Actor } from '../../rules/access/access.ts';
import { requireFreshSignIn } from '../../rules/access/fresh-sign-in.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { needsFreshSignIn, permissionToChange, rolesInvitedBy } from '../../rules/orgs/membership.ts';
import { readInPages, type PageFields } from '../../rules/page.ts';
import { lockUser } from '../../store/people/accounts.ts';
import { insertActivity, type ActivityActor } from '../../store/activity/activity.ts';
import { findOrg, findRole, findUser, insertMembership } from '../../store/people/identity.ts';
import { newId } from '../../store/database/ids.ts';
import {
  countSentLately,
  findInvitation,
  findInvitationByHash,
  insertInvitation,
  listPendingInvitations,
  markAccepted,
  markRevoked,
  revokeEarlier,
  revokeSentBy,
  type InvitationStatus,
  type InvitationWithStatus,
} from '../../store/orgs/invitations.ts';
import { findMember, isMemberAddress, lockMemberships, type MemberRow } from '../../store/orgs/memberships.ts';
import type { Database, DatabaseTransaction } from '../../store/database/schema.ts';
import { requireOrgPermission } from '../access/access.ts';
import type { ServiceContext } from '../context/context.ts';
import { linkTokenSha256 } from '../access/one-time-links.ts';

export type { InvitationWithStatus };

/** Role of an invitation that names none. */
const DEFAULT_ROLE: Role = 'member';

/** An invitation with its org's name, as shown to the holder of its token. */
export type ReceivedInvitationRow = InvitationWithStatus & { orgName: string };

export async function listInvitations(
  context: ServiceContext,
  orgId: string,
  query: PageQuery,
): Promise<{ rows: InvitationWithStatus[]; fields: PageFields }> {
  return await readInPages('invitations', query, (page) => listPendingInvitations(context.db, orgId, page));
}

/** Invites an address, replacing its pending invitation. A durable step sends the mail. */
export async function createInvitation(
  context: ServiceContext,
  actor: Actor,
  orgId: string,
  { email, role = DEFAULT_ROLE }: { email: string; role?: Role | undefined },
): Promise<InvitationWithStatus> {
  const id = newId('invitation');
  return await context.db.transaction().execute(async (trx) => {
    // The limit spans all orgs: concurrent invitations into several orgs must see each other.
    await lockUser(trx, actor.userId);
    await lockMemberships(trx, orgId);
    const change = { from: null, to: role };
    await requireOrgPermission({ ...context, db: trx }, actor, orgId, permissionToChange(change));
    if (needsFreshSignIn(change)) requireFreshSignIn(actor, context.settings);
    if (await isMemberAddress(trx, orgId, email))
      throw new CodedError('already_member', 'a member of the org has this address');
    await requireFewSent(trx, actor, email);
    const replaced = await revokeEarlier(trx, orgId, email);
    const invitation = await insertInvitation(trx, {
      id,
      orgId,
      email,
      role,
      invitedBy: actor.userId,
      days: INVITATION_DAYS,
    });
    await insertActivity(trx, {
      orgId,
      actor,
      kind: 'invitation_created',
      subject: { kind: 'invitation', id },
      details: { email, role, ...(replaced === undefined ? {} : { replaces: replaced }) },
    });
    await context.lifecycle.enqueueInvitationMail(trx, id);
    return invitation;
  });
}

export async function revokeInvitation(
  context: ServiceContext,
  actor: Actor,
  orgId: string,
  invitationId: string,
): Promise<InvitationWithStatus> {
  return await context.db.transaction().execute(async (trx) => {
    await lockMemberships(trx, orgId);
    const invitation = await findInvitation(trx, orgId, invitationId);
    if (invitation === undefined) throw new CodedError('invitation_not_found', 'there is no invitation with this id');
    requirePending(invitation);
    const revoked = await markRevoked(trx, invitationId);
    if (revoked === undefined) throw new Error(`the invitation ${invitationId} is pending and cannot be revoked`);
    await insertActivity(trx, { orgId, actor, kind: 'invitation_revoked', ...activityFieldsOf(invitation) });
    return revoked;
  });
}

/**
 * Revokes a person's invitations that their new role (null: no member) could not send: the org no
 * longer trusts that person to admit anyone so. Call it in the transaction that changes the role,
 * after taking its lock.
 */
export async function revokeOfFormerRole(
  trx: DatabaseTransaction,
  actor: Actor,
  { orgId, userId, role }: { orgId: string; userId: string; role: Role | null },
): Promise<void> {
  for (const invitation of await revokeSentBy(trx, { orgId, invitedBy: userId, keptRoles: rolesInvitedBy(role) })) {
    const { subject, details } = activityFieldsOf(invitation);
    await insertActivity(trx, {
      orgId,
      actor,
      kind: 'invitation_revoked',
      subject,
      details: { ...details, inviter: userId },
    });
  }
}

/** The invitation with this token, in any state; null if there is none. */
export async function findInvitationByToken(db: Database, token: string): Promise<ReceivedInvitationRow | null> {
  const invitation = await findInvitationByHash(db, linkTokenSha256(token));
  if (invitation === undefined) return null;
  const org = await findOrg(db, invitation.org_id);
  return org === undefined ? null : { ...invitation, orgName: org.name };
}

/** As {@link findInvitationByToken}. Throws `invitation_not_found`. */
export async function getInvitation(context: ServiceContext, token: string): Promise<ReceivedInvitationRow> {
  const invitation = await findInvitationByToken(context.db, token);
  if (invitation === null) throw unknownToken();
  return invitation;
}

export interface Acceptance {
  token: string;
  /** The new member. */
  userId: string;
  /** The actor recorded in the feed. */
  actor: ActivityActor;
}

/**
 * Makes the user a member in the invited role and consumes the invitation: exactly one of any
 * number of concurrent callers succeeds. Throws `invitation_not_found`, `invitation_for_another`,
 * `email_not_verified`, `invitation_not_pending`, `already_member`.
 */
export async function acceptInvitationAs(
  context: Pick<ServiceContext, 'db'>,
  { token, userId, actor }: Acceptance,
): Promise<{ orgId: string; member: MemberRow }> {
  const hash = linkTokenSha256(token);
  return await context.db.transaction().execute(async (trx) => {
    const orgId = (await findInvitationByHash(trx, hash))?.org_id;
    if (orgId === undefined) throw unknownToken();
    await lockMemberships(trx, orgId);
    // Read again under the lock: it may have been accepted, revoked or mailed with another token.
    const invitation = await findInvitationByHash(trx, hash);
    if (invitation === undefined) throw unknownToken();
    await requireInvited(trx, userId, invitation);
    requirePending(invitation);
    if ((await findRole(trx, orgId, userId)) !== undefined)
      throw new CodedError('already_member', 'you are already a member of the org');
    await insertMembership(trx, { orgId, userId, role: invitation.role });
    await markAccepted(trx, invitation.id, userId);
    await insertActivity(trx, { orgId, actor, kind: 'invitation_accepted', ...activityFieldsOf(invitation) });
    const member = await findMember(trx, orgId, userId);
    if (member === undefined)
      throw new Error(`the membership of ${userId} in ${orgId} is missing in the transaction that created it`);
    return { orgId, member };
  });
}

/** Throws unless the invited address is the user's and verified. */
async function requireInvited(
  trx: DatabaseTransaction,
  userId: string,
  { email }: InvitationWithStatus,
): Promise<void> {
  const user = await findUser(trx, userId);
  if (user?.email.toLowerCase() !== email)
    throw new CodedError('invitation_for_another', "this invitation is for another email address than your account's");

  if (!user.emailVerified)
    throw new CodedError('email_not_verified', 'verify your email address first, then accept the invitation');
}

const OUTCOMES: { readonly [status in Exclude<InvitationStatus, 'pending'>]: string } = {
  accepted: 'was already accepted',
  revoked: 'was revoked',
  expired: 'has expired',
};

function requirePending({ status }: InvitationWithStatus): void {
  if (status !== 'pending') throw new CodedError('invitation_not_pending', `the invitation ${OUTCOMES[status]}`);
}

async function requireFewSent(trx: DatabaseTransaction, actor: Actor, email: string): Promise<void> {
  const sent = await countSentLately(trx, actor.userId, email);
  const { total, sameAddress } = INVITATIONS_PER_HOUR;
  const most =
    sent.total >= total
      ? `${total} invitations`
      : sent.sameAddress >= sameAddress
        ? `${sameAddress} invitations to one address`
        : undefined;
  if (most === undefined) return;
  throw new CodedError('rate_limited', `a user can send at most ${most} within an hour; try again later`, {
    retryAfterSeconds: Math.max(1, sent.secondsLeft),
  });
}

/** Activity fields of every change of an invitation. */
export function activityFieldsOf({ id, email, role }: Pick<InvitationWithStatus, 'id' | 'email' | 'role'>): {
  subject: { kind: 'invitation'; id: string };
  details: { email: string; role: string };
} {
  return { subject: { kind: 'invitation', id }, details: { email, role } };
}

function unknownToken(): CodedError {
  return new CodedError(
    'invitation_not_found',
    'there is no invitation with this token; a newer mail may have replaced it',
  );
}
