// The page that verifies an account's address. The mailed link shows a button without further
// effect, because mail scanners open links too.
import { ONE_TIME_LINK_MINUTES } from '@berth/contract/route/limits.ts';
import { z } from 'zod';
import { html } from '../rules/html.ts';
import { accountKey, addressKey } from '../rules/access/throttle.ts';
import { findLinkedAccount, sendVerification, verifyEmail } from '../services/people/accounts.ts';
import { SignInError } from '../services/people/sign-in-port.ts';
import { unseen } from './parts/fields.ts';
import { errorSummary, form, hidden, readForm, withError } from './parts/form.ts';
import { goneLink, sentence, statusOf } from './parts/refusals.ts';
import { linkGone } from './reset-password.ts';
import { signInPath } from './sign-in.ts';
import {
  redirect,
  shown,
  type Page,
  type PageAnswer,
  type ShownPage,
  type Site,
  type SiteRequest,
} from './parts/site.ts';

const schema = z.object({ token: unseen });
const TITLE = 'Verify your email address';

export const verifyEmailPage: Page = {
  path: '/verify-email',
  get: async (site, request) => {
    const token = request.query('token');
    if (token === '') return requestMailPage(request);
    const user = await findLinkedAccount(site.context, 'verify_email', token).catch(linkGone);
    if (user === null) return goneLink(SEND_AGAIN);
    return shown(
      TITLE,
      html`<p>Is <strong>${user.email}</strong> your address, and did you create an account with it?</p>
        ${form('/verify-email', html`${hidden('token', token)}<button type="submit">Yes, verify it</button>`)}`,
    );
  },
  post: async (site, request) => {
    const token = readForm(schema, request.form).read?.token ?? '';
    if (token === '') return await sendAgain(site, request);
    const verified = await verifyEmail(site.context, token).catch(linkGone);
    if (verified === null) return goneLink(SEND_AGAIN);
    return shown(
      'Your email address is verified',
      html`<p><strong>${verified.email}</strong> is verified.</p>
        <p><a href="/sign-in">${request.visitor === null ? 'Sign in' : 'Continue'}</a></p>`,
    );
  },
};

const SEND_AGAIN = html`<p><a href="/verify-email">Request a new link</a></p>`;

function requestMailPage({ visitor }: SiteRequest): PageAnswer {
  if (visitor === null) return redirect(signInPath('/verify-email'));
  if (visitor.user.emailVerified) return alreadyVerified(visitor.user.email);
  return mailForm(visitor.user.email, {});
}

async function sendAgain(site: Site, request: SiteRequest): Promise<PageAnswer> {
  const { visitor, caller } = request;
  if (visitor === null || visitor.user.emailVerified) return requestMailPage(request);
  const { user } = visitor;
  try {
    await site.signIn.throttle('verify-email', [accountKey(user.email), addressKey(caller.address)]);
  } catch (error) {
    if (!(error instanceof SignInError)) throw error;
    return mailForm(user.email, statusOf(error), sentence(error.message));
  }
  try {
    await sendVerification(site.context, user);
  } catch (error) {
    site.context.log.warn({ err: error, userId: user.id }, 'a mail that verifies an address could not be sent');
    const why = 'The mail could not be sent. Try again in a few minutes.';
    return mailForm(user.email, { status: 503, failed: true, retryAfterSeconds: 60 }, why);
  }
  return shown(
    'Check your mail',
    html`<p>A mail with a link is on its way to <strong>${user.email}</strong>.</p>
      <p>The link works once, for ${ONE_TIME_LINK_MINUTES.verify_email / 60} hours. Earlier links no longer work.</p>`,
  );
}

function mailForm(address: string, more: Parameters<typeof shown>[2], failure?: string): ShownPage {
  return shown(
    TITLE,
    html`${failure === undefined ? '' : errorSummary(withError({}, null, failure))}
      <p>A mail with a link is sent to <strong>${address}</strong>. Opening the link verifies the address.</p>
      ${form('/verify-email', html`<button type="submit">Send the mail</button>`)}`,
    more,
  );
}

function alreadyVerified(address: string): ShownPage {
  return shown(
    'Your email address is verified',
    html`<p><strong>${address}</strong> is verified; there is nothing to do.</p>`,
  );
}
