// The page that mails a password reset link. Never discloses, by text or timing, whether an account
// exists.
import { EMAIL_CHARACTERS, ONE_TIME_LINK_MINUTES } from '@berth/contract/route/limits.ts';
import { z } from 'zod';
import { html } from '../rules/html.ts';
import { accountKey, addressKey } from '../rules/access/throttle.ts';
import { requestPasswordReset } from '../services/people/accounts.ts';
import { SignInError } from '../services/people/sign-in-port.ts';
import { knownEmail } from './parts/fields.ts';
import { EMPTY_FORM, errorSummary, field, form, readForm, type FormState } from './parts/form.ts';
import { refusedForm, statusOf } from './parts/refusals.ts';
import { shown, type Page, type ShownPage } from './parts/site.ts';

const schema = z.object({ email: knownEmail });

export const forgotPasswordPage: Page = {
  path: '/forgot-password',
  get: async (_site, { visitor }) =>
    forgotForm({ ...EMPTY_FORM, values: visitor === null ? {} : { email: visitor.user.email } }, {}),
  post: async (site, { form: sent, caller }) => {
    const { read, wrong } = readForm(schema, sent);
    if (wrong !== undefined) return forgotForm(wrong, { status: 400, failed: true });
    const { email } = read;
    try {
      await site.signIn.throttle('reset-password', [accountKey(email), addressKey(caller.address)]);
    } catch (error) {
      if (!(error instanceof SignInError)) throw error;
      return forgotForm(refusedForm({ email }, error), statusOf(error));
    }
    site.runInBackground('a mail with a link to a new password', () => requestPasswordReset(site.context, email));
    return shown(
      'Check your mail',
      html`<p>
          If there is an account with the address <strong>${email}</strong>, a mail with a link is on its way to it.
        </p>
        <p>The link works once, for ${ONE_TIME_LINK_MINUTES.reset_password} minutes.</p>
        <p class="aside"><a href="/sign-in">Back to sign-in</a></p>`,
    );
  },
};

function forgotForm(state: FormState, more: Parameters<typeof shown>[2]): ShownPage {
  const fields = html`${field(state, {
      name: 'email',
      label: 'Email address',
      type: 'email',
      autocomplete: 'username',
      maxLength: EMAIL_CHARACTERS,
      hint: 'The address of your account. A link to choose a new password is sent to it.',
    })} <button type="submit">Send the link</button>`;
  return shown(
    'Choose a new password',
    html`${errorSummary(state)}${form('/forgot-password', fields)}
      <p class="aside"><a href="/sign-in">Back to sign-in</a></p>`,
    more,
  );
}
