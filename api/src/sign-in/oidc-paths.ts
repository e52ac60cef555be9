// Paths and cookie of a sign-in at the OIDC provider.
import type { SignInRefusal } from '../services/people/sign-in-port.ts';

/** Redirect URI path, as registered at the provider. */
export const OIDC_CALLBACK_PATH = '/auth/oidc/callback';

/** Default destination after sign-in: the page shows who is signed in. */
export const SIGNED_IN_PATH = '/sign-in';

/** The cookie with the sealed state and PKCE verifier of a sign-in at the provider. */
export function stateCookieName(publicUrl: string): string {
  return publicUrl.startsWith('https://') ? '__Host-berth_oidc' : 'berth_oidc';
}

/** Path of the sign-in page with the reason of a failed OIDC sign-in and the destination. */
export function signInRefusedPath(refusal: SignInRefusal, returnTo: string | null): string {
  const query = new URLSearchParams({ error: refusal });
  if (returnTo !== null && returnTo !== SIGNED_IN_PATH) query.set('return_to', returnTo);
  return `${SIGNED_IN_PATH}?${query.toString()}`;
}
