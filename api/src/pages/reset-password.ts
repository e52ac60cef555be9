// The page of a mailed password reset link.
import { z } from 'zod';
import { html } from '../rules/html.ts';
import { findLinkedAccount, resetPassword } from '../services/people/accounts.ts';
import { SignInError } from '../services/people/sign-in-port.ts';
import { clearedLoginCookie } from '../sign-in/login-cookie.ts';
import { fixedEmailField, isRepeated, newPasswordFields, newPasswordShape, REPEATED, unseen } from './parts/fields.ts';
import { checkbox, EMPTY_FORM, errorSummary, form, hidden, readForm, type FormState } from './parts/form.ts';
import { goneLink, refusedForm, statusOf } from './parts/refusals.ts';
import { redirect, shown, type Page, type ShownPage, type Site } from './parts/site.ts';

const schema = z
  .object({ token: unseen, revoke: z.enum(['yes', '']).catch(''), ...newPasswordShape })
  .refine(isRepeated, REPEATED);

export const resetPasswordPage: Page = {
  path: '/reset-password',
  get: async (site, request) => await resetForm(site, request.query('token'), EMPTY_FORM, {}),
  post: async (site, { form: sent, visitor }) => {
    const { read, wrong } = readForm(schema, sent);
    if (wrong !== undefined)
      return await resetForm(site, wrong.values['token'] ?? '', wrong, { status: 400, failed: true });
    try {
      await resetPassword(site.context, site.signIn, { ...read, revokeCredentials: read.revoke === 'yes' });
      // The reset ended the account's sign-in sessions. A visitor signed in to another account now
      // uses this one.
      if (visitor !== null) await site.signIn.endLogin(visitor.loginId);
      return redirect('/sign-in?notice=password-set', clearedLoginCookie(site.context.settings.publicUrl));
    } catch (error) {
      if (!(error instanceof SignInError)) throw error;
      return await resetForm(site, read.token, refusedForm({ revoke: read.revoke }, error), statusOf(error));
    }
  },
};

async function resetForm(
  { context }: Site,
  token: string,
  state: FormState,
  more: Parameters<typeof shown>[2],
): Promise<ShownPage> {
  const user = await findLinkedAccount(context, 'reset_password', token).catch(linkGone);
  if (user === null) return goneLink(html`<p><a href="/forgot-password">Request a new link</a></p>`);
  const fields = html`${hidden('token', token)} ${fixedEmailField(state, user.email)} ${newPasswordFields(state)}
    ${checkbox(state, {
      name: 'revoke',
      label: 'Also revoke my API keys and agent tokens',
      hint:
        'If somebody else may have used your account. Programs that use them stop working, in every org. ' +
        'So do public links that the keys created.',
    })} <button type="submit">Set the password</button>`;
  return shown(
    'Set a new password',
    html`${errorSummary(state)}
      <p>This ends every sign-in of your account, on all devices.</p>
      ${form('/reset-password', fields)}`,
    more,
  );
}

/** null for an invalid link. */
export function linkGone(error: unknown): null {
  if (error instanceof SignInError && error.refusal === 'link_invalid') return null;
  throw error;
}
