// The paths and the cookie of a sign-in at the OIDC provider.
import type { SignInRefusal } from '../services/people/sign-in-port.ts';

/** The way back from the provider, as it is registered there. */
export const OIDC_CALLBACK_PATH = '/auth/oidc/callback';

/** Where somebody goes who wanted to go nowhere: the page says who is signed in. */
export const SIGNED_IN_PATH = '/sign-in';

/** The cookie that holds the state of a sign-in at the provider, and its PKCE verifier, sealed. */
export function stateCookieName(publicUrl: string): string {
  return publicUrl.startsWith('https://') ? '__Host-berth_oidc' : 'berth_oidc';
}

/**
 * The sign-in page, to say there why signing in elsewhere did not succeed, and to go on to where
 * the person wanted to go.
 */
export function signInRefusedPath(refusal: SignInRefusal, returnTo: string | null): string {
  const query = new URLSearchParams({ error: refusal });
  if (returnTo !== null && returnTo !== SIGNED_IN_PATH) query.set('return_to', returnTo);
  return `${SIGNED_IN_PATH}?${query.toString()}`;
}
