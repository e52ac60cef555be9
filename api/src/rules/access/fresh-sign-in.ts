// Decides whether a sign-in is recent enough to create credentials, owners and admins: an access
// token or cookie that was stolen later must not outlive the sign-in. Pure.
import { CodedError } from '../coded-error.ts';
import type { Actor } from './access.ts';

/** The page that confirms the browser's sign-in. */
export const CONFIRM_PAGE = '/confirm';

interface FreshnessSettings {
  publicUrl: string;
  /** 0: any age. */
  reauthenticateMinutes: number;
}

export function isFresh(secondsSinceSignIn: number, { reauthenticateMinutes }: FreshnessSettings): boolean {
  return reauthenticateMinutes === 0 || secondsSinceSignIn <= reauthenticateMinutes * 60;
}

/**
 * Throws `reauthentication_required` for an older sign-in. API keys and agent tokens were not
 * obtained by signing in and pass.
 */
export function requireFreshSignIn(actor: Actor, settings: FreshnessSettings): void {
  if (actor.kind !== 'session' || isFresh(actor.secondsSinceSignIn, settings)) return;
  const { publicUrl, reauthenticateMinutes: minutes } = settings;
  throw new CodedError(
    'reauthentication_required',
    `this needs a sign-in of the last ${minutes} minutes (BERTH_REAUTHENTICATE_MINUTES): ` +
      `in a browser confirm it at ${publicUrl}${CONFIRM_PAGE}, in a program sign in again`,
  );
}
