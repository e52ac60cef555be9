// The page to sign in with a password or at the OIDC provider. Shows a signed-in person the
// available actions.
import { EMAIL_CHARACTERS } from '@berth/contract/route/limits.ts';
import { z } from 'zod';
import { CONSOLE_PATH } from '../rules/console-path.ts';
import { html, type Html } from '../rules/html.ts';
import { accountKey, addressKey } from '../rules/access/throttle.ts';
import { sendVerificationTo } from '../services/people/accounts.ts';
import { SecondFactorRequired } from '../services/people/factors-port.ts';
import { SignInError, type SignInRefusal } from '../services/people/sign-in-port.ts';
import { loginCookie } from '../sign-in/login-cookie.ts';
import { localPath } from '../sign-in/local-path.ts';
import { currentPassword, knownEmail, passwordField, unseen } from './parts/fields.ts';
import { EMPTY_FORM, errorSummary, field, form, hidden, readForm, withError, type FormState } from './parts/form.ts';
import { previewSources, providerSources } from './parts/protection.ts';
import { offerPasskey } from './passkey-form.ts';
import { toSecondFactor } from './pending-sign-in.ts';
import { refusedForm, statusOf } from './parts/refusals.ts';
import {
  pathWith,
  redirect,
  shown,
  type Page,
  type ShownPage,
  type Site,
  type SiteRequest,
  type SignedInVisitor,
} from './parts/site.ts';

const schema = z.object({ email: knownEmail, password: currentPassword, return_to: unseen });

/** Notices from other pages, by their name in the query. */
const NOTICES: ReadonlyMap<string, string> = new Map([
  ['signed-out', 'You are signed out.'],
  ['password-set', 'The new password is set. Sign in with it.'],
]);

/** Reasons of a failed sign-in at the provider, by their name in the query. */
const PROVIDER_ERRORS: ReadonlyMap<string, string> = new Map<SignInRefusal, string>([
  ['too_many_attempts', 'Too many attempts. Wait a moment and try again.'],
  ['email_not_verified', 'The provider does not report your email address as verified.'],
  ['email_taken', 'An account with your email address already exists and signs in with a password.'],
  ['sign_up_closed', 'You have no account yet. Ask a member of your org for an invitation.'],
  [
    'sign_up_limit',
    'Too many accounts were created from your network address or with your mail domain within the last hour. ' +
      'Try again later, or ask the operator (BERTH_SIGN_UPS_PER_ADDRESS, BERTH_SIGN_UPS_PER_DOMAIN).',
  ],
  ['link_invalid', 'The sign-in took too long, or was started in another browser. Try again.'],
  ['provider_unavailable', 'The provider does not respond. Try again in a moment.'],
  ['provider_refused', 'The provider rejected the sign-in.'],
]);

export const signInPage: Page = {
  path: '/sign-in',
  get: async (site, request) => {
    const returnTo = localPath(request.query('return_to'));
    if (request.visitor !== null) {
      const target = returnTo ?? (site.context.settings.consoleFolder === null ? null : CONSOLE_PATH);
      return target === null ? signedIn(request.visitor) : redirect(target);
    }
    const failure = PROVIDER_ERRORS.get(request.query('error'));
    const state = failure === undefined ? EMPTY_FORM : withError({}, null, failure);
    return await signInForm(
      site,
      request,
      state,
      returnTo,
      { failed: failure !== undefined },
      NOTICES.get(request.query('notice')),
    );
  },
  post: async (site, request) => {
    const { read, wrong } = readForm(schema, request.form);
    if (wrong !== undefined) {
      return await signInForm(site, request, wrong, localPath(wrong.values['return_to']), {
        status: 400,
        failed: true,
      });
    }
    const returnTo = localPath(read.return_to);
    try {
      const login = await site.signIn.withPassword({ email: read.email, password: read.password }, request.caller);
      if (request.visitor !== null) await site.signIn.endLogin(request.visitor.loginId);
      return redirect(returnTo ?? '/sign-in', loginCookie(site.context.settings.publicUrl, login));
    } catch (error) {
      if (!(error instanceof SignInError)) throw error;
      if (error instanceof SecondFactorRequired) return toSecondFactor(site, error, returnTo);
      if (error.refusal === 'email_not_verified')
        site.runInBackground('a mail that verifies an address', () => verifyAddress(site, request, read.email));
      return await signInForm(site, request, refusedForm({ email: read.email }, error), returnTo, statusOf(error));
    }
  },
};

/** For a person who proved to know the password of an account with an unverified address. */
async function verifyAddress({ context, signIn }: Site, { caller }: SiteRequest, email: string): Promise<void> {
  await signIn.throttle('verify-email', [accountKey(email), addressKey(caller.address)]);
  await sendVerificationTo(context, email);
}

/** Path of this page that leads back to `returnTo`. */
export function signInPath(returnTo: string): string {
  return pathWith('/sign-in', { return_to: returnTo });
}

async function signInForm(
  site: Site,
  request: SiteRequest,
  state: FormState,
  returnTo: string | null,
  more: Parameters<typeof shown>[2],
  notice?: string,
): Promise<ShownPage> {
  const { context, signIn } = site;
  const passkey = await offerPasskey(site, request, { purpose: 'sign_in', returnTo, text: 'Sign in with a passkey' });
  const providers = signIn.oidcName === null ? [] : providerSources(context.settings.publicUrl);
  const back = hidden('return_to', returnTo ?? '');
  const fields = html`${field(state, {
      name: 'email',
      label: 'Email address',
      type: 'email',
      autocomplete: 'username',
      maxLength: EMAIL_CHARACTERS,
    })}
    ${passwordField(state)} ${back} <button type="submit">Sign in</button>`;
  return shown(
    'Sign in',
    html`${notice === undefined ? '' : html`<p class="notice" role="status">${notice}</p>`} ${errorSummary(state)}
      ${form('/sign-in', fields)}
      <p class="aside"><a href="/forgot-password">Forgot your password?</a></p>
      ${passkey.form} ${signIn.oidcName === null ? '' : providerForm(signIn.oidcName, returnTo ?? '/sign-in')}`,
    { ...more, ...passkey.page, formsLeadTo: [...providers, ...previewSources(context.settings.previewUrl, returnTo)] },
  );
}

/** @param alone no other way to sign in is above it */
export function providerForm(name: string, returnTo: string, { alone = false } = {}): Html {
  const button = html`<button type="submit" class="second">Continue with ${name}</button>`;
  return html`${alone ? '' : html`<div class="or"><span>or</span></div>`}
  ${form('/auth/oidc', html`${hidden('return_to', returnTo)}${button}`)}`;
}

function signedIn({ user }: SignedInVisitor): ShownPage {
  const unverified = html`<p class="warning">
    Your email address is not verified yet. <a href="/verify-email">Verify it</a> to accept invitations.
  </p>`;
  return shown(
    'You are signed in',
    html`<p>Hello, ${user.name === '' ? user.email : user.name}.</p>
      ${user.emailVerified ? '' : unverified}
      <ul class="choices">
        <li><a href="/device">Approve a device that shows a code</a></li>
        <li><a href="/sign-ins">See and end your sign-ins</a></li>
        <li><a href="/account">Secure your account with a passkey or an app</a></li>
        <li><a href="/forgot-password">Choose a new password</a></li>
      </ul>`,
  );
}
