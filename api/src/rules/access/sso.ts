// Decides whether a member of an org needs a sign-in at the OIDC provider. Pure.
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

/** Throws `sso_required` if the member's access token is of a sign-in without SSO. */
export function requireSso(actor: Actor, terms: SsoTerms | null, settings: SsoSettings): void {
  if (actor.kind !== 'session' || actor.viaSso || terms === null || !needsSso(terms)) return;
  throw ssoRequired(`this org requires single sign-on for addresses of ${mailDomain(terms.email)}`, settings);
}

/** Throws `sso_required` unless the actor signed in by SSO. */
export function requireOwnSso(actor: Actor, reason: string, settings: SsoSettings): void {
  if (actor.kind !== 'session' || !actor.viaSso) throw ssoRequired(reason, settings);
}

/** Exact domains only: an org that also uses subdomains claims each. */
export function needsSso({ email, domains }: SsoTerms): boolean {
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
