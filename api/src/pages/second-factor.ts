// The page that asks for the code of an authenticator app, after the password.
import { z } from 'zod';
import { html } from '../rules/html.ts';
import { noteRecoveryCodeUse } from '../services/people/factor-mails.ts';
import { SignInError } from '../services/people/sign-in-port.ts';
import { loginCookie } from '../sign-in/login-cookie.ts';
import { localPath } from '../sign-in/local-path.ts';
import { codeField, oneTimeCode, unseen } from './parts/fields.ts';
import { EMPTY_FORM, errorSummary, form, hidden, readForm, type FormState } from './parts/form.ts';
import { clearedPendingSignIn, pendingSignIn, SECOND_FACTOR_PAGE } from './pending-sign-in.ts';
import { previewSources } from './parts/protection.ts';
import { refusedForm, statusOf } from './parts/refusals.ts';
import { offerPasskey } from './passkey-form.ts';
import { signInPath } from './sign-in.ts';
import { redirect, shown, type Page, type ShownPage, type Site, type SiteRequest } from './parts/site.ts';

const schema = z.object({ code: oneTimeCode, return_to: unseen });

export const secondFactorPage: Page = {
  path: SECOND_FACTOR_PAGE,
  get: async (site, request) => {
    const returnTo = localPath(request.query('return_to'));
    if (pendingSignIn(site, request) === null) return redirect(signInPath(returnTo ?? ''));
    return await codeForm(site, request, EMPTY_FORM, returnTo, {});
  },
  post: async (site, request) => {
    const pending = pendingSignIn(site, request);
    const { read, wrong } = readForm(schema, request.form);
    const returnTo = localPath((read ?? wrong.values)['return_to']);
    if (pending === null) return redirect(signInPath(returnTo ?? ''));
    if (wrong !== undefined) return await codeForm(site, request, wrong, returnTo, { status: 400, failed: true });
    try {
      const { login, use } = await site.signIn.withSecondFactor(pending, read.code, request.caller);
      if (request.visitor !== null) await site.signIn.endLogin(request.visitor.loginId);
      if (use.kind === 'recovery') {
        site.runInBackground('a mail about a recovery code', () =>
          noteRecoveryCodeUse(site.context, login.userId, use.left),
        );
      }
      return redirect(returnTo ?? '/sign-in', [
        loginCookie(site.context.settings.publicUrl, login),
        clearedPendingSignIn(site),
      ]);
    } catch (error) {
      if (!(error instanceof SignInError)) throw error;
      const isOver = error.refusal === 'link_invalid' || error.refusal === 'wrong_credentials';
      if (isOver) return redirect(signInPath(returnTo ?? ''), clearedPendingSignIn(site));
      return await codeForm(site, request, refusedForm({}, error), returnTo, statusOf(error));
    }
  },
};

async function codeForm(
  site: Site,
  request: SiteRequest,
  state: FormState,
  returnTo: string | null,
  more: Parameters<typeof shown>[2],
): Promise<ShownPage> {
  const passkey = await offerPasskey(site, request, { purpose: 'sign_in', returnTo, text: 'Use a passkey' });
  const fields = html`${codeField(state, 'The six digits that your authenticator app shows, or a recovery code.')}
    ${hidden('return_to', returnTo ?? '')} <button type="submit">Sign in</button>`;
  return shown(
    'Enter your code',
    html`${errorSummary(state)} ${form(SECOND_FACTOR_PAGE, fields)} ${passkey.form}
      <p class="aside"><a href="/sign-in">Start again</a></p>`,
    { ...more, ...passkey.page, formsLeadTo: previewSources(site.context.settings.previewUrl, returnTo) },
  );
}
