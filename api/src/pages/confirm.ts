// The page on which a signed-in person proves their identity again, before an action that requires
// a recent sign-in.
import { z } from 'zod';
import { html } from '../rules/html.ts';
import { CONFIRM_PAGE, isFresh } from '../rules/access/fresh-sign-in.ts';
import { canUsePassword } from '../services/people/accounts.ts';
import { SignInError } from '../services/people/sign-in-port.ts';
import { localPath } from '../sign-in/local-path.ts';
import { currentPassword, unseen } from './fields.ts';
import { EMPTY_FORM, errorSummary, field, form, hidden, readForm, type FormState } from './form.ts';
import { previewSources, providerSources } from './protection.ts';
import { refusedForm, statusOf } from './refusals.ts';
import { providerForm, signInPath } from './sign-in.ts';
import { pathWith, redirect, shown, type Page, type ShownPage, type Site, type SignedInVisitor } from './site.ts';

const schema = z.object({ password: currentPassword, return_to: unseen });

export const confirmPage: Page = {
  path: CONFIRM_PAGE,
  get: async (site, request) => {
    const { visitor } = request;
    const returnTo = localPath(request.query('return_to'));
    if (visitor === null) return redirect(signInPath(confirmPath(returnTo)));
    if (await isVisitorFresh(site, visitor)) return returnTo === null ? CONFIRMED : redirect(returnTo);
    return await confirmForm(site, visitor, EMPTY_FORM, returnTo, {});
  },
  post: async (site, { form: sent, visitor, caller }) => {
    const { read, wrong } = readForm(schema, sent);
    const returnTo = localPath((read ?? wrong.values)['return_to']);
    if (visitor === null) return redirect(signInPath(confirmPath(returnTo)));
    if (wrong !== undefined) return await confirmForm(site, visitor, wrong, returnTo, { status: 400, failed: true });
    const { loginId, user } = visitor;
    try {
      await site.signIn.confirmWithPassword({ loginId, email: user.email }, read.password, caller);
    } catch (error) {
      if (!(error instanceof SignInError)) throw error;
      return await confirmForm(site, visitor, refusedForm({}, error), returnTo, statusOf(error));
    }
    return returnTo === null ? CONFIRMED : redirect(returnTo);
  },
};

/** Path of this page that leads back to `returnTo`. */
export function confirmPath(returnTo: string | null): string {
  return pathWith(CONFIRM_PAGE, { return_to: returnTo ?? '' });
}

/** True if the sign-in in the browser is recent enough for actions that require that. */
export async function isVisitorFresh({ context, signIn }: Site, { loginId }: SignedInVisitor): Promise<boolean> {
  return isFresh(await signIn.secondsSinceSignIn(loginId), context.settings);
}

async function confirmForm(
  { context, signIn }: Site,
  { user }: SignedInVisitor,
  state: FormState,
  returnTo: string | null,
  more: Parameters<typeof shown>[2],
): Promise<ShownPage> {
  const back = hidden('return_to', returnTo ?? '');
  const fields = html`${field(state, {
      name: 'password',
      label: 'Password',
      type: 'password',
      autocomplete: 'current-password',
      maxLength: 1_024,
    })}
    ${back} <button type="submit">Confirm</button>`;
  const hasPassword = await canUsePassword(context, user.id);
  const { oidcName } = signIn;
  const minutes = context.settings.reauthenticateMinutes;
  return shown(
    'Confirm that it is you',
    html`${errorSummary(state)}
      <p>
        Your last sign-in is more than ${minutes} ${minutes === 1 ? 'minute' : 'minutes'} old. Creating credentials and
        owners, and signing in a device, needs a recent one.
      </p>
      ${hasPassword ? form(CONFIRM_PAGE, fields) : ''}
      ${oidcName === null ? '' : providerForm(oidcName, returnTo ?? '/sign-in', { alone: !hasPassword })}
      <p class="aside"><a href="/sign-out">Sign out instead</a></p>`,
    {
      ...more,
      formsLeadTo: [
        ...(oidcName === null ? [] : providerSources(context.settings.publicUrl)),
        ...previewSources(context.settings.previewUrl, returnTo),
      ],
    },
  );
}

const CONFIRMED = shown(
  'Your sign-in is confirmed',
  html`<p>Repeat the action that asked for it. You can close this page.</p>`,
);
