// The cookie of a sign-in that waits for its second factor. Only the browser with the cookie can
// complete it.
import type { SecondFactorRequired } from '../services/people/factors-port.ts';
import { cookie } from '../sign-in/login-cookie.ts';
import { pathWith, redirect, type PageAnswer, type Site, type SiteRequest } from './parts/site.ts';

export const SECOND_FACTOR_PAGE = '/second-factor';
/** The sealed value in the cookie expires itself. */
const COOKIE_SECONDS = 600;

export function toSecondFactor(
  { context }: Site,
  { pending }: SecondFactorRequired,
  returnTo: string | null,
): PageAnswer {
  const { publicUrl } = context.settings;
  return redirect(
    pathWith(SECOND_FACTOR_PAGE, { return_to: returnTo ?? '' }),
    cookie(publicUrl, cookieName(publicUrl), pending, COOKIE_SECONDS),
  );
}

export function pendingSignIn({ context }: Site, request: SiteRequest): string | null {
  return request.cookie(cookieName(context.settings.publicUrl));
}

/** A `Set-Cookie` value. */
export function clearedPendingSignIn({ context }: Site): string {
  const { publicUrl } = context.settings;
  return cookie(publicUrl, cookieName(publicUrl), '', 0);
}

function cookieName(publicUrl: string): string {
  return publicUrl.startsWith('https://') ? '__Host-berth_pending' : 'berth_pending';
}
