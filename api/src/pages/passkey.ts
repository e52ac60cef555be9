// The target of forms that use a passkey: signs in, or confirms the sign-in of the browser.
import { z } from 'zod';
import { html } from '../rules/html.ts';
import { SignInError } from '../services/people/sign-in-port.ts';
import { loginCookie } from '../sign-in/login-cookie.ts';
import { localPath } from '../sign-in/local-path.ts';
import { confirmPath } from './confirm.ts';
import { passkeyCredential, unseen } from './parts/fields.ts';
import { readForm } from './parts/form.ts';
import { sentence, statusOf } from './parts/refusals.ts';
import { redirect, shown, type Page, type PageAnswer, type Site, type SiteRequest } from './parts/site.ts';
import { knownBrowser, PASSKEY_PAGE } from './passkey-form.ts';
import { clearedPendingSignIn } from './pending-sign-in.ts';
import { signInPath } from './sign-in.ts';

const schema = z.object({
  sealed: unseen,
  credential: passkeyCredential,
  purpose: z.enum(['sign_in', 'confirm']).catch('sign_in'),
  return_to: unseen,
});

export const passkeyPage: Page = {
  path: PASSKEY_PAGE,
  get: async () => await Promise.resolve(redirect('/sign-in')),
  post: async (site, request) => {
    const { read } = readForm(schema, request.form);
    if (read === undefined) return redirect('/sign-in');
    const returnTo = localPath(read.return_to);
    const again = read.purpose === 'confirm' ? confirmPath(returnTo) : signInPath(returnTo ?? '');
    try {
      return await use(site, request, read, returnTo);
    } catch (error) {
      if (!(error instanceof SignInError)) throw error;
      return shown(
        'The passkey was not accepted',
        html`<p>${sentence(error.message)}</p>
          <p><a href="${again}">Try again</a></p>`,
        statusOf(error),
      );
    }
  },
};

async function use(
  site: Site,
  request: SiteRequest,
  sent: z.output<typeof schema>,
  returnTo: string | null,
): Promise<PageAnswer> {
  const { signIn, context } = site;
  const { visitor, caller } = request;
  const { userId } = await signIn.passkeys.use(sent, knownBrowser(site, request) ?? '', caller);
  if (sent.purpose === 'confirm' && visitor !== null) {
    if (visitor.user.id !== userId) throw new SignInError('passkey_refused', 'this passkey is of another account');
    await signIn.confirmLogin(visitor.loginId);
    return redirect(returnTo ?? '/confirm');
  }
  const login = await signIn.createLogin(userId, caller);
  if (visitor !== null) await signIn.endLogin(visitor.loginId);
  return redirect(returnTo ?? '/sign-in', [loginCookie(context.settings.publicUrl, login), clearedPendingSignIn(site)]);
}
