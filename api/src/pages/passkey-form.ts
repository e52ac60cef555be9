// Forms that use a passkey, and the cookie that binds their challenge to the browser.
import { randomBytes } from 'node:crypto';
import { html, type Html } from '../rules/html.ts';
import type { PasskeyCeremony } from '../services/people/passkeys-port.ts';
import { cookie } from '../sign-in/login-cookie.ts';
import { hidden } from './parts/form.ts';
import type { Site, SiteRequest } from './parts/site.ts';

export const PASSKEY_PAGE = '/passkey';
/** Longer than any form stays open. */
const COOKIE_SECONDS = 86_400;
const SECRET_FORM = /^[\w-]{43}$/;

interface BrowserSecret {
  secret: string;
  /** `Set-Cookie` value. */
  cookie: string;
}

/** The secret of the browser's cookie; a new one if it has none. */
export function browserSecret(site: Site, request: SiteRequest): BrowserSecret {
  const { publicUrl } = site.context.settings;
  const secret = knownBrowser(site, request) ?? randomBytes(32).toString('base64url');
  return { secret, cookie: cookie(publicUrl, cookieName(publicUrl), secret, COOKIE_SECONDS) };
}

/** As {@link browserSecret}; null if the browser has none. */
export function knownBrowser({ context }: Site, request: SiteRequest): string | null {
  const known = request.cookie(cookieName(context.settings.publicUrl));
  return known !== null && SECRET_FORM.test(known) ? known : null;
}

function cookieName(publicUrl: string): string {
  return publicUrl.startsWith('https://') ? '__Host-berth_browser' : 'berth_browser';
}

interface PasskeyForm {
  action: string;
  kind: 'create' | 'get';
  ceremony: PasskeyCeremony;
  fields: Html;
  /** With a line above that offers it as another way. */
  other?: boolean;
}

/** A form that the page's script shows and runs. */
export function passkeyForm({ action, kind, ceremony, fields, other = false }: PasskeyForm): Html {
  return html`<div hidden>
    ${other ? html`<div class="or"><span>or</span></div>` : ''}
    <form method="post" action="${action}" data-passkey="${kind}" data-options="${ceremony.options}" novalidate>
      ${hidden('sealed', ceremony.sealed)}${hidden('credential', '')}${fields}
      <p class="hint" role="status"></p>
    </form>
  </div>`;
}

interface UseOffer {
  form: Html;
  /** For the page: {@link browserSecret}, and the script. */
  page: { cookie?: string; script?: true };
}

/** The offer to use a passkey, if the service can have them. */
export async function offerPasskey(
  site: Site,
  request: SiteRequest,
  { purpose, returnTo, text }: { purpose: 'sign_in' | 'confirm'; returnTo: string | null; text: string },
): Promise<UseOffer> {
  const { passkeys } = site.signIn;
  if (!passkeys.possible) return { form: html``, page: {} };
  const browser = browserSecret(site, request);
  const ceremony = await passkeys.beginUse(browser.secret);
  const fields = html`${hidden('purpose', purpose)}${hidden('return_to', returnTo ?? '')}
    <button type="submit" class="second">${text}</button>`;
  return {
    form: passkeyForm({ action: PASSKEY_PAGE, kind: 'get', ceremony, fields, other: true }),
    page: { cookie: browser.cookie, script: true },
  };
}
