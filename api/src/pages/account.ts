// The account page: the authenticator app and its recovery codes. Every change requires a recent
// sign-in and is mailed to the user.
import { z } from 'zod';
import { html, type Html } from '../rules/html.ts';
import { noteFactorChange, type FactorChange } from '../services/people/factor-mails.ts';
import type { TotpEnrolment, TotpState } from '../services/people/factors-port.ts';
import { SignInError } from '../services/people/sign-in-port.ts';
import { changePasskeys, PASSKEY_ACTIONS, passkeySection } from './account-passkeys.ts';
import { confirmPath, isVisitorFresh } from './confirm.ts';
import { codeField, oneTimeCode, unseen } from './parts/fields.ts';
import { EMPTY_FORM, errorSummary, form, hidden, readForm, type FormState } from './parts/form.ts';
import { qrCode } from './parts/qr-code.ts';
import { refusedForm, sentence, statusOf } from './parts/refusals.ts';
import { signInPath } from './sign-in.ts';
import {
  redirect,
  shown,
  type Page,
  type PageAnswer,
  type ShownPage,
  type Site,
  type SiteRequest,
  type SignedInVisitor,
} from './parts/site.ts';

const PATH = '/account';
const ACTIONS = ['begin_totp', 'enable_totp', 'disable_totp', 'replace_codes', ...PASSKEY_ACTIONS] as const;
const schema = z.object({ action: z.enum(ACTIONS), sealed: unseen });
const codeSchema = z.object({ code: oneTimeCode });

export const accountPage: Page = {
  path: PATH,
  get: async (site, { visitor }) => {
    if (visitor === null) return redirect(signInPath(PATH));
    const { factors, passkeys } = site.signIn;
    const known = passkeys.possible ? passkeySection(await passkeys.list(visitor.user.id)) : html``;
    return overview(await factors.totpState(visitor.user.id), known);
  },
  post: async (site, request) => {
    const { visitor } = request;
    const { read } = readForm(schema, request.form);
    if (visitor === null) return redirect(signInPath(PATH));
    if (read === undefined) return redirect(PATH);
    if (!(await isVisitorFresh(site, visitor))) return redirect(confirmPath(PATH));
    try {
      return await change(site, request, visitor, read);
    } catch (error) {
      if (!(error instanceof SignInError)) throw error;
      return shown(
        'That did not work',
        html`<p>${sentence(error.message)}</p>
          <p><a href="${PATH}">Back to your account</a></p>`,
        statusOf(error),
      );
    }
  },
};

async function change(
  site: Site,
  request: SiteRequest,
  visitor: SignedInVisitor,
  { action, sealed }: z.output<typeof schema>,
): Promise<PageAnswer> {
  const { factors } = site.signIn;
  const userId = visitor.user.id;
  const note = (what: FactorChange): void =>
    site.runInBackground('a mail about sign-in methods', () => noteFactorChange(site.context, userId, what));
  switch (action) {
    case 'begin_totp':
      return enrolmentForm(factors.beginTotp({ userId, email: visitor.user.email }), EMPTY_FORM, {});
    case 'enable_totp':
      return await enable(site, request, visitor, sealed, () => note('totp_added'));
    case 'disable_totp':
      if (await factors.disableTotp(userId)) note('totp_removed');
      return redirect(PATH);
    case 'replace_codes': {
      const codes = await factors.replaceRecoveryCodes(userId);
      note('recovery_codes_replaced');
      return recoveryCodes('New recovery codes', codes, 'The earlier codes no longer work.');
    }
    default:
      return await changePasskeys(site, request, visitor, action, note);
  }
}

async function enable(
  { signIn }: Site,
  { form: sent, caller }: SiteRequest,
  { user }: SignedInVisitor,
  sealed: string,
  note: () => void,
): Promise<PageAnswer> {
  const enrolment = signIn.factors.readTotp({ userId: user.id, email: user.email }, sealed);
  const { read, wrong } = readForm(codeSchema, sent);
  if (wrong !== undefined) return enrolmentForm(enrolment, wrong, { status: 400, failed: true });
  try {
    const codes = await signIn.factors.enableTotp(user.id, { sealed, code: read.code }, caller);
    note();
    return recoveryCodes('The authenticator app is set up', codes, 'From now on, your password needs a code as well.');
  } catch (error) {
    if (!(error instanceof SignInError) || error.refusal === 'factor_conflict') throw error;
    return enrolmentForm(enrolment, refusedForm({}, error), statusOf(error));
  }
}

function overview(totp: TotpState | null, passkeys: Html): ShownPage {
  return shown(
    'Your account',
    html`<h2>Authenticator app</h2>
      ${totp === null ? WITHOUT_TOTP : withTotp(totp)} ${passkeys}
      <h2>Password</h2>
      <p><a href="/forgot-password">Choose a new password</a></p>
      <h2>Sign-ins</h2>
      <p><a href="/sign-ins">Browsers and devices that can act as you</a></p>`,
  );
}

const WITHOUT_TOTP = html`<p>
    Sign in with your password and a code from an app on your phone, so that the password alone opens nothing.
  </p>
  ${form(PATH, html`${hidden('action', 'begin_totp')}<button type="submit">Set up an authenticator app</button>`)}`;

function withTotp({ since, recoveryCodesLeft }: TotpState): Html {
  const left = recoveryCodesLeft === 1 ? '1 recovery code is' : `${recoveryCodesLeft} recovery codes are`;
  return html`<p>On since ${since.toISOString().slice(0, 10)}. ${left} left.</p>
    ${form(
      PATH,
      html`<div class="buttons">
        <button type="submit" name="action" value="replace_codes" class="second">New recovery codes</button>
        <button type="submit" name="action" value="disable_totp" class="second">Remove the app</button>
      </div>`,
    )}`;
}

function enrolmentForm(
  { uri, secret, sealed }: TotpEnrolment,
  state: FormState,
  more: Parameters<typeof shown>[2],
): ShownPage {
  const fields = html`${hidden('action', 'enable_totp')}${hidden('sealed', sealed)}
    ${codeField(state, 'The six digits that the app shows now.')} <button type="submit">Turn on</button>`;
  return shown(
    'Set up an authenticator app',
    html`${errorSummary(state)}
      <p>Scan this code with an authenticator app, or type the secret into it.</p>
      ${qrCode(uri, 'QR code of the secret')}
      <p class="secret">${secret.replaceAll(/.{4}(?=.)/g, '$& ')}</p>
      ${form(PATH, fields)}
      <p class="aside"><a href="${PATH}">Cancel</a></p>`,
    more,
  );
}

function recoveryCodes(title: string, codes: readonly string[], notice: string): ShownPage {
  return shown(
    title,
    html`<p class="notice" role="status">${notice}</p>
      <p>
        Store these recovery codes in a safe place. Each signs you in once, in place of a code of the app. They are not
        shown again.
      </p>
      <ul class="codes">
        ${codes.map((code) => html`<li><code>${code}</code></li>`)}
      </ul>
      <p><a href="${PATH}">Continue</a></p>`,
  );
}
