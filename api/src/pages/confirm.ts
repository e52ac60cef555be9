// The page on which a signed-in person proves their identity again, before an action that requires
// a recent sign-in.
import { z } from 'zod';
import { html } from '../rules/html.ts';
import { CONFIRM_PAGE, isFresh } from '../rules/access/fresh-sign-in.ts';
import { canUsePassword } from '../services/people/accounts.ts';
import { noteRecoveryCodeUse } from '../services/people/factor-mails.ts';
import { SignInError, type Caller } from '../services/people/sign-in-port.ts';
import { localPath } from '../sign-in/local-path.ts';
import { codeField, currentPassword, oneTimeCode, passwordField, unseen } from './parts/fields.ts';
import { EMPTY_FORM, errorSummary, form, hidden, readForm, type FormState } from './parts/form.ts';
import { previewSources, providerSources } from './parts/protection.ts';
import { refusedForm, statusOf } from './parts/refusals.ts';
import { providerForm, signInPath } from './sign-in.ts';
import { offerPasskey } from './passkey-form.ts';
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

const passwordSchema = z.object({ password: currentPassword, return_to: unseen });
const codeSchema = z.object({ code: oneTimeCode, return_to: unseen });

export const confirmPage: Page = {
  path: CONFIRM_PAGE,
  get: async (site, request) => {
    const { visitor } = request;
    const returnTo = localPath(request.query('return_to'));
    if (visitor === null) return redirect(signInPath(confirmPath(returnTo)));
    if (await isVisitorFresh(site, visitor)) return returnTo === null ? CONFIRMED : redirect(returnTo);
    return await confirmForm(site, request, visitor, EMPTY_FORM, returnTo, {});
  },
  post: async (site, request) => {
    const { form: sent, visitor, caller } = request;
    const returnTo = localPath(readForm(z.object({ return_to: unseen }), sent).read?.return_to);
    if (visitor === null) return redirect(signInPath(confirmPath(returnTo)));
    // The password alone does not confirm where it alone does not sign in.
    const needsCode = (await site.signIn.factors.totpState(visitor.user.id)) !== null;
    const { read, wrong } = needsCode ? readForm(codeSchema, sent) : readForm(passwordSchema, sent);
    if (wrong !== undefined)
      return await confirmForm(site, request, visitor, wrong, returnTo, { status: 400, failed: true });
    const { loginId, user } = visitor;
    try {
      if ('password' in read)
        await site.signIn.confirmWithPassword({ loginId, email: user.email }, read.password, caller);
      else await confirmWithCode(site, visitor, read.code, caller);
    } catch (error) {
      if (!(error instanceof SignInError)) throw error;
      return await confirmForm(site, request, visitor, refusedForm({}, error), returnTo, statusOf(error));
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

async function confirmWithCode(
  site: Site,
  { loginId, user }: SignedInVisitor,
  code: string,
  caller: Caller,
): Promise<void> {
  const use = await site.signIn.confirmWithCode({ loginId, userId: user.id }, code, caller);
  if (use.kind === 'recovery')
    site.runInBackground('a mail about a recovery code', () => noteRecoveryCodeUse(site.context, user.id, use.left));
}

async function confirmForm(
  site: Site,
  request: SiteRequest,
  { user }: SignedInVisitor,
  state: FormState,
  returnTo: string | null,
  more: Parameters<typeof shown>[2],
): Promise<ShownPage> {
  const { context, signIn } = site;
  const has = (await signIn.passkeys.list(user.id)).length > 0;
  const passkey = has
    ? await offerPasskey(site, request, { purpose: 'confirm', returnTo, text: 'Confirm with a passkey' })
    : null;
  const back = hidden('return_to', returnTo ?? '');
  const needsCode = (await signIn.factors.totpState(user.id)) !== null;
  const fields = html`${
      needsCode
        ? codeField(state, 'The six digits that your authenticator app shows, or a recovery code.')
        : passwordField(state)
    }
    ${back} <button type="submit">Confirm</button>`;
  const hasForm = needsCode || (await canUsePassword(context, user.id));
  const { oidcName } = signIn;
  const minutes = context.settings.reauthenticateMinutes;
  return shown(
    'Confirm that it is you',
    html`${errorSummary(state)}
      <p>
        Your last sign-in is more than ${minutes} ${minutes === 1 ? 'minute' : 'minutes'} old. Creating credentials,
        owners and admins, and signing in a device, needs a recent one.
      </p>
      ${hasForm ? form(CONFIRM_PAGE, fields) : ''} ${passkey?.form}
      ${oidcName === null ? '' : providerForm(oidcName, returnTo ?? '/sign-in', { alone: !hasForm })}
      <p class="aside"><a href="/sign-out">Sign out instead</a></p>`,
    {
      ...more,
      ...passkey?.page,
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
