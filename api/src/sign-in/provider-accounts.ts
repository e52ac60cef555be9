// Decides whether a person of the OIDC provider gets a new account, and counts new accounts.
import { addressKey, domainKey } from '../rules/access/throttle.ts';
import type { Settings } from '../services/context/settings.ts';
import { SignInError, type Caller, type SignIn } from '../services/people/sign-in-port.ts';
import type { Database } from '../store/database/schema.ts';
import { hasAccountFor, hasPendingInvitation } from '../store/people/sign-in.ts';

/** Reasons to refuse a provider's person; custom codes in the library's refusals. */
type ProviderRefusal = 'email_not_verified' | 'sign_up_closed' | 'sign_up_limit';

/** A person identified by the provider. */
interface IdentifiedPerson {
  providerId: string;
  accountId: string;
  email: string | undefined;
  emailVerified: boolean;
}

/** A decision made before the library's transaction, passed through it as part of the profile. */
interface PrefetchedFacts {
  newAccount: { address: string; verdict: 'counted' | 'sign_up_closed' | 'sign_up_limit' } | null;
}

/**
 * Decides for {@link checkProviderUser}, and counts the account that the person will get; null for
 * a person with an account. The library calls that function inside a transaction. A query there
 * would need a second connection of the same pool, and enough concurrent callers would deadlock.
 */
export async function prefetchFacts(
  { db, settings, throttle }: { db: Database; settings: Pick<Settings, 'signUp'>; throttle: SignIn['throttle'] },
  { email, emailVerified, ...account }: IdentifiedPerson,
  caller: Caller,
): Promise<PrefetchedFacts> {
  if (!emailVerified || email === undefined) return { newAccount: null };
  const address = email.toLowerCase();
  if (await hasAccountFor(db, { ...account, email: address })) return { newAccount: null };
  if (settings.signUp !== 'open' && !(await hasPendingInvitation(db, address)))
    return { newAccount: { address, verdict: 'sign_up_closed' } };
  try {
    await throttle('sign-up', [addressKey(caller.address), domainKey(address)]);
  } catch (error) {
    if (!(error instanceof SignInError)) throw error;
    return { newAccount: { address, verdict: 'sign_up_limit' } };
  }
  return { newAccount: { address, verdict: 'counted' } };
}

/**
 * Decides whether a provider's person may get a new account. The library decides about linking and
 * sign-in by its configuration. Queries nothing: the facts are in the profile.
 */
export function checkProviderUser(
  user: { email?: string | undefined; emailVerified?: boolean | undefined },
  {
    action,
    oauth,
  }: {
    action: 'create-user' | 'link-account' | 'sign-in';
    oauth?: { profile?: Record<string, unknown> | undefined } | undefined;
  },
): { error: ProviderRefusal } | undefined {
  if (action !== 'create-user') return undefined;
  if (user.emailVerified !== true || user.email === undefined) return { error: 'email_not_verified' };
  const { newAccount = null }: Partial<PrefetchedFacts> = oauth?.profile ?? {};
  // An account that was deleted meanwhile: the next attempt is counted.
  if (newAccount === null || newAccount.address !== user.email.toLowerCase()) return { error: 'sign_up_closed' };
  return newAccount.verdict === 'counted' ? undefined : { error: newAccount.verdict };
}
