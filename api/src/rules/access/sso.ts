// Decides for every credential whether a member's sign-in at the OIDC provider is behind it, where
// an org requires that. Pure.
import { CodedError } from '../coded-error.ts';
import type { Actor } from './access.ts';

/** A member of an org that requires single sign-on. */
export interface SsoTerms {
  email: string;
  /** Proven domains of the org. */
  domains: readonly string[];
}

interface SsoSettings {
  publicUrl: string;
}

/**
 * Throws `sso_required` if the credential came of a sign-in without SSO. API keys pass: the org's
 * owners and admins create them in it, see their origin, and revoke them.
 */
export function requireSso(actor: Actor, terms: SsoTerms | null, settings: SsoSettings): void {
  if (actor.kind === 'api_key' || terms === null || !lacksSso({ viaSso: actor.viaSso, sso: terms })) return;
  const token = actor.kind === 'agent_token' ? '; this personal agent token was created without: create another' : '';
  throw ssoRequired(`this org requires single sign-on for addresses of ${mailDomain(terms.email)}${token}`, settings);
}

/** True if the org requires SSO of the member, and the sign-in came otherwise. */
export function lacksSso({ viaSso, sso }: { viaSso: boolean; sso: SsoTerms | null }): boolean {
  return !viaSso && sso !== null && needsSso(sso);
}

/** Origin to store with a credential that the actor creates. Keys and tokens create none. */
export function cameBySso(actor: Actor): boolean {
  return actor.kind === 'session' && actor.viaSso;
}

/** Throws `sso_required` unless the actor signed in by SSO. */
export function requireOwnSso(actor: Actor, reason: string, settings: SsoSettings): void {
  if (!cameBySso(actor)) throw ssoRequired(reason, settings);
}

/** Exact domains only: an org that also uses subdomains claims each. */
function needsSso({ email, domains }: SsoTerms): boolean {
  return domains.includes(mailDomain(email));
}

/** Domain of an address in the form of a claim: lower case, punycode, no final dot. */
export function mailDomain(email: string): string {
  const host = email
    .slice(email.lastIndexOf('@') + 1)
    .trim()
    .toLowerCase()
    .replace(/\.$/, '');
  if (/^[a-z0-9.-]*$/.test(host)) return host;
  const url = URL.parse(`http://${host}`);
  return url !== null && !/[/?#@:\\]/.test(host) ? url.hostname : host;
}

function ssoRequired(reason: string, { publicUrl }: SsoSettings): CodedError {
  return new CodedError(
    'sso_required',
    `${reason}: sign in at ${publicUrl}/sign-in with the single sign-on button; ` +
      'in a program, sign in again and approve it in that browser',
  );
}
