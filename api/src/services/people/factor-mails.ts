// Mails to a user whose sign-in methods changed, so that a change by somebody else is noticed.
import { findUser } from '../../store/people/identity.ts';
import type { ServiceContext } from '../context/context.ts';
import { accountNoticeMail } from './account-mails.ts';

export type FactorChange =
  | 'totp_added'
  | 'totp_removed'
  | 'recovery_codes_replaced'
  | 'passkey_added'
  | 'passkey_removed';

const CHANGES: { readonly [change in FactorChange]: string } = {
  totp_added: 'An authenticator app was added to',
  passkey_added: 'A passkey was added to',
  passkey_removed: 'A passkey was removed from',
  totp_removed: 'The authenticator app was removed from',
  recovery_codes_replaced: 'New recovery codes were created for',
};

export async function noteFactorChange(context: ServiceContext, userId: string, change: FactorChange): Promise<void> {
  await send(context, userId, CHANGES[change]);
}

export async function noteRecoveryCodeUse(context: ServiceContext, userId: string, left: number): Promise<void> {
  await send(context, userId, `A recovery code was used (${left} left) for`);
}

async function send(context: ServiceContext, userId: string, change: string): Promise<void> {
  const user = await findUser(context.db, userId);
  if (user !== undefined) await context.mailer.send(accountNoticeMail(context.settings.publicUrl, user.email, change));
}
