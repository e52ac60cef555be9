// The sign-out page.
import { z } from 'zod';
import { html } from '../rules/html.ts';
import { localPath } from '../sign-in/local-path.ts';
import { clearedLoginCookie } from '../sign-in/login-cookie.ts';
import { unseen } from './parts/fields.ts';
import { form, readForm } from './parts/form.ts';
import { redirect, shown, type Page } from './parts/site.ts';

const SIGNED_OUT = '/sign-in?notice=signed-out';

export const signOutPage: Page = {
  path: '/sign-out',
  get: async (_site, { visitor }) => {
    if (visitor === null) return redirect(SIGNED_OUT);
    return shown(
      'Sign out',
      html`<p>This ends your sign-in in this browser, and all access that was granted through it.</p>
        ${form('/sign-out', html`<button type="submit">Sign out</button>`)}
        <p class="aside"><a href="/sign-in">Stay signed in</a></p>`,
    );
  },
  post: async ({ context, signIn }, { visitor, form: sent }) => {
    if (visitor !== null) await signIn.endLogin(visitor.loginId);
    const returnTo = localPath(readForm(z.object({ return_to: unseen }), sent).read?.return_to);
    return redirect(returnTo ?? SIGNED_OUT, clearedLoginCookie(context.settings.publicUrl));
  },
};
