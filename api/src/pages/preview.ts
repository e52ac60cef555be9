// The page to which a team link's preview redirects a browser. Redirects members of the sandbox's
// org back with a grant; others sign in first. Shows content only if there is no redirect target.
import { userKey } from '../rules/access/throttle.ts';
import { html } from '../rules/html.ts';
import { PREVIEW_PAGE } from '../rules/previews/path.ts';
import { grantPreview, readTeamLink } from '../services/previews/sign-in.ts';
import { SignInError } from '../services/people/sign-in-port.ts';
import { goneLink, sentence, statusOf } from './parts/refusals.ts';
import { signInPath } from './sign-in.ts';
import {
  redirectElsewhere,
  pathWith,
  redirect,
  shown,
  type Page,
  type ShownPage,
  type SignedInVisitor,
} from './parts/site.ts';

export const previewPage: Page = {
  path: PREVIEW_PAGE,
  get: async ({ context, signIn }, request) => {
    const [link, sandbox, port, path] = [
      request.query('link'),
      request.query('sandbox'),
      request.query('port'),
      request.query('path'),
    ];
    const team = readTeamLink(context, { link, sandbox, port });
    if (team === null) return UNKNOWN;
    if (request.visitor === null) return redirect(signInPath(pathWith(PREVIEW_PAGE, { link, sandbox, port, path })));
    const { loginId, user } = request.visitor;
    try {
      await signIn.throttle('preview-grant', [userKey(user.id)]);
    } catch (error) {
      if (!(error instanceof SignInError)) throw error;
      return shown('This preview cannot be opened now', html`<p>${sentence(error.message)}</p>`, statusOf(error));
    }
    const way = await grantPreview(context, { loginId, userId: user.id }, team, path);
    if (way === 'not_allowed') return notAllowed(request.visitor);
    if (way === 'sso_required') return SSO_REQUIRED;
    return way === 'sandbox_gone' ? GONE : redirectElsewhere(way.location);
  },
};

const UNKNOWN = goneLink(html`<p>Ask the sender of the link for a new one.</p>`);

const GONE = shown('This sandbox was destroyed', html`<p>The sandbox and its previews no longer exist.</p>`, {
  status: 404,
});

const SSO_REQUIRED = shown(
  'This preview needs single sign-on',
  html`<p>Its org requires single sign-on for your address.</p>
    <p><a href="/sign-out">Sign out</a>, open the link again, and sign in with the single sign-on button.</p>`,
  { status: 403 },
);

function notAllowed({ user }: SignedInVisitor): ShownPage {
  return shown(
    'You have no access to this preview',
    html`<p>Only members of its org can open it; <strong>${user.email}</strong> is not a member.</p>
      <p>If you are a member with another address, <a href="/sign-out">sign out</a> and open the link again.</p>`,
    { status: 403 },
  );
}
