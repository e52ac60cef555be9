// The page of the first start's link: the owner sets the account's address, name and password.
import { EMAIL_CHARACTERS } from '@berth/contract/route/limits.ts';
import { z } from 'zod';
import { html } from '../rules/html.ts';
import { findLinkedAccount, welcomeOwner } from '../services/people/accounts.ts';
import { SignInError } from '../services/people/sign-in-port.ts';
import { loginCookie } from '../sign-in/login-cookie.ts';
import {
  isRepeated,
  nameField,
  newEmail,
  newPasswordFields,
  newPasswordShape,
  personName,
  REPEATED,
  unseen,
} from './parts/fields.ts';
import { EMPTY_FORM, errorSummary, field, form, hidden, readForm, type FormState } from './parts/form.ts';
import { goneLink, refusedForm, statusOf } from './parts/refusals.ts';
import { linkGone } from './reset-password.ts';
import { redirect, shown, type Page, type ShownPage, type Site } from './parts/site.ts';

const schema = z
  .object({ token: unseen, email: newEmail, name: personName, ...newPasswordShape })
  .refine(isRepeated, REPEATED);

export const welcomePage: Page = {
  path: '/welcome',
  get: async (site, request) => await welcomeForm(site, request.query('token'), EMPTY_FORM, {}),
  post: async (site, { form: sent, caller, visitor }) => {
    const { read, wrong } = readForm(schema, sent);
    if (wrong !== undefined)
      return await welcomeForm(site, wrong.values['token'] ?? '', wrong, { status: 400, failed: true });
    const { token, email, name, password } = read;
    try {
      const { userId } = await welcomeOwner(site.context, site.signIn, { token, email, name, password });
      if (visitor !== null) await site.signIn.endLogin(visitor.loginId);
      const login = await site.signIn.createLogin(userId, caller);
      return redirect('/sign-in', loginCookie(site.context.settings.publicUrl, login));
    } catch (error) {
      if (!(error instanceof SignInError)) throw error;
      return await welcomeForm(site, token, refusedForm({ email, name }, error), statusOf(error));
    }
  },
};

async function welcomeForm(
  { context }: Site,
  token: string,
  state: FormState,
  more: Parameters<typeof shown>[2],
): Promise<ShownPage> {
  const user = await findLinkedAccount(context, 'welcome', token).catch(linkGone);
  if (user === null) {
    return goneLink(
      html`<p>To create another link, run <code>./berth owner-link</code> on the host that Berth runs on.</p>`,
    );
  }

  // The bootstrap address is undeliverable and not offered.
  const address = newEmail.safeParse(user.email).data;
  const fields = html`${hidden('token', token)}
    ${field(state, {
      name: 'email',
      label: 'Email address',
      type: 'email',
      autocomplete: 'username',
      maxLength: EMAIL_CHARACTERS,
      hint: 'Used to sign in, and to receive a link to a new password.',
      ...(address === undefined ? {} : { value: address }),
    })}
    ${nameField(state)} ${newPasswordFields(state)} <button type="submit">Create the account</button>`;
  return shown(
    'Welcome to Berth',
    html`${errorSummary(state)}
      <p>
        This is the owner’s account of a new installation, with all permissions: invite people, create keys, change the
        plan.
      </p>
      ${form('/welcome', fields)}`,
    more,
  );
}
