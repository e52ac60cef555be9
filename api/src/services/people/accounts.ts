// Account changes by mailed or printed links: the first owner's welcome, password resets, address
// verification; and sign-up by invitation. Each consumes the link in the same transaction. Sign-in
// owns passwords.
import type { OwnerLink } from '@berth/protocol/operator-commands.ts';
import { ONE_TIME_LINK_MINUTES } from '@berth/contract/route/limits.ts';
import { deleteUnusedLinks, findUserByEmail, hasPassword, lockUser, updateUser } from '../../store/people/accounts.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import { findUser } from '../../store/people/identity.ts';
import type { Database, UserRow } from '../../store/database/schema.ts';
import { emailVerificationMail, passwordResetMail } from './account-mails.ts';
import { requireOwnedOrg } from '../access/owned-org.ts';
import { OPERATOR } from '../access/api-keys.ts';
import { revokeCredentialsOf } from '../access/revoked-credentials.ts';
import type { ServiceContext } from '../context/context.ts';
import type { ReceivedInvitationRow } from '../orgs/invitations.ts';
import {
  findOneTimeLink,
  makeOneTimeLink,
  oneTimeLinkPath,
  useOneTimeLink,
  type LinkPurpose,
} from '../access/one-time-links.ts';
import { SignInError, type SignIn } from './sign-in-port.ts';

export type { UserRow };

const PG_UNIQUE_VIOLATION = '23505';
/** Format of link tokens. Other text was copied incompletely and needs no query. */
const TOKEN_FORM = /^[\w-]{43}$/;

export async function findAccount(context: ServiceContext, userId: string): Promise<UserRow | null> {
  return (await findUser(context.db, userId)) ?? null;
}

/** False for an account that signs in at the OIDC provider only. */
export async function canUsePassword(context: ServiceContext, userId: string): Promise<boolean> {
  return await hasPassword(context.db, userId);
}

/** @param email in lower case */
export async function hasAccount(context: ServiceContext, email: string): Promise<boolean> {
  return (await findUserByEmail(context.db, email)) !== undefined;
}

/** The account of a link, without consuming the link. Throws `link_invalid`. */
export async function findLinkedAccount(
  context: ServiceContext,
  purpose: LinkPurpose,
  token: string,
): Promise<UserRow> {
  const link = TOKEN_FORM.test(token) ? await findOneTimeLink(context.db, purpose, token) : null;
  const user = link === null ? undefined : await findUser(context.db, link.userId);
  if (user === undefined) throw linkInvalid();
  return user;
}

/**
 * Mails a password reset link to an account's address; does nothing if there is no such account.
 */
export async function requestPasswordReset(context: ServiceContext, email: string): Promise<void> {
  const user = await findUserByEmail(context.db, email);
  if (user === undefined) return;
  const token = await newLink(context.db, 'reset_password', user.id);
  await context.mailer.send(passwordResetMail(context.settings.publicUrl, user.email, token));
}

/**
 * Sets a new password with a mailed link and consumes the link. Also verifies the address, as the
 * link was mailed to it. Ends every sign-in session of the user, and on request revokes the user's
 * API keys and agent tokens. Throws `link_invalid`, `password_unfit`.
 */
export async function resetPassword(
  context: ServiceContext,
  signIn: SignIn,
  { token, password, revokeCredentials = false }: { token: string; password: string; revokeCredentials?: boolean },
): Promise<void> {
  await context.db.transaction().execute(async (trx) => {
    const { userId } = await requireUse(trx, 'reset_password', token);
    await signIn.setPassword(userId, password, trx);
    await updateUser(trx, userId, { emailVerified: true });
    await deleteUnusedLinks(trx, userId, ['welcome', 'verify_email']);
    if (revokeCredentials) await revokeCredentialsOf(trx, userId, 'its creator set a new password');
  });
}

/** Mails a link that verifies the account's address. Throws if the mail cannot be handed over. */
export async function sendVerification(context: ServiceContext, user: UserRow): Promise<void> {
  const token = await newLink(context.db, 'verify_email', user.id);
  await context.mailer.send(emailVerificationMail(context.settings.publicUrl, user.email, token));
}

/** As {@link sendVerification}, for an unverified account with the address, if there is one. */
export async function sendVerificationTo(context: ServiceContext, email: string): Promise<void> {
  const user = await findUserByEmail(context.db, email);
  if (user !== undefined && !user.emailVerified) await sendVerification(context, user);
}

/** Verifies the address to which the link was mailed. Throws `link_invalid`. */
export async function verifyEmail(context: ServiceContext, token: string): Promise<{ email: string }> {
  return await context.db.transaction().execute(async (trx) => {
    const { userId } = await requireUse(trx, 'verify_email', token);
    await updateUser(trx, userId, { emailVerified: true });
    const user = await findUser(trx, userId);
    if (user === undefined) throw linkInvalid();
    return { email: user.email };
  });
}

/**
 * Sets address, name and password of the account created by the first start. The address counts as
 * verified: the link proves access to the host. Throws `link_invalid`, `email_taken`,
 * `password_unfit`.
 */
export async function welcomeOwner(
  context: ServiceContext,
  signIn: SignIn,
  { token, email, name, password }: { token: string; email: string; name: string; password: string },
): Promise<{ userId: string }> {
  return await context.db.transaction().execute(async (trx) => {
    const { userId } = await requireUse(trx, 'welcome', token);
    const other = await findUserByEmail(trx, email);
    if (other !== undefined && other.id !== userId) throw emailTaken();
    await signIn.setPassword(userId, password, trx);
    // A concurrent sign-up may have taken the address.
    await updateUser(trx, userId, { email, name, emailVerified: true }).catch((error: unknown) => {
      throw (error as { code?: unknown }).code === PG_UNIQUE_VIOLATION ? emailTaken() : error;
    });
    await deleteUnusedLinks(trx, userId, ['reset_password', 'verify_email']);
    return { userId };
  });
}

/**
 * Creates the account of an invited person who has none. The address counts as verified, as the
 * token was mailed to it. Acceptance is a separate step: if it is interrupted, the person signs in
 * and accepts. Throws `email_taken`, `password_unfit`.
 */
export async function signUpByInvitation(
  signIn: SignIn,
  { email }: ReceivedInvitationRow,
  { name, password }: { name: string; password: string },
): Promise<{ userId: string }> {
  return await signIn.createAccount({ email, name, password, emailVerified: true });
}

/** A new link for the owner; voids earlier ones. Throws as {@link requireOwnedOrg}. */
export async function makeOwnerLink(db: Database): Promise<OwnerLink> {
  return await db.transaction().execute(async (trx) => {
    const first = await requireOwnedOrg(trx);
    const owner = await findUser(trx, first.ownerId);
    if (owner === undefined) throw new Error(`the owner ${first.ownerId} has no account`);
    const kind = (await hasPassword(trx, owner.id)) ? 'reset_password' : 'welcome';
    const minutes = ONE_TIME_LINK_MINUTES[kind];
    const token = await makeOneTimeLink(trx, { purpose: kind, userId: owner.id, minutes });
    await insertActivity(trx, {
      orgId: first.orgId,
      actor: OPERATOR,
      kind: 'owner_link_created',
      subject: { kind: 'user', id: owner.id },
      details: { purpose: kind, minutes },
    });
    return { kind, path: oneTimeLinkPath(kind, token), email: owner.email, minutes };
  });
}

async function newLink(db: Database, purpose: LinkPurpose, userId: string): Promise<string> {
  return await db
    .transaction()
    .execute((trx) => makeOneTimeLink(trx, { purpose, userId, minutes: ONE_TIME_LINK_MINUTES[purpose] }));
}

async function requireUse(trx: Database, purpose: LinkPurpose, token: string): Promise<{ userId: string }> {
  const found = TOKEN_FORM.test(token) ? await findOneTimeLink(trx, purpose, token) : null;
  if (found === null) throw linkInvalid();
  await lockUser(trx, found.userId);
  const link = await useOneTimeLink(trx, purpose, token);
  if (link === null) throw linkInvalid();
  return link;
}

function emailTaken(): SignInError {
  return new SignInError('email_taken', 'another account has this email address');
}

function linkInvalid(): SignInError {
  return new SignInError('link_invalid', 'this link was already used, has expired, or is incomplete');
}
