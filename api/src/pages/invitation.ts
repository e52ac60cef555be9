// The page of a mailed invitation. A person signed in with the invited address accepts. A person
// without an account creates one here; its address counts as verified because the token came by
// mail. Anyone else sees what to do first.
import { z } from 'zod';
import { CodedError } from '../rules/coded-error.ts';
import { html, type Html } from '../rules/html.ts';
import { addressKey, domainKey } from '../rules/access/throttle.ts';
import { hasAccount, signUpByInvitation } from '../services/people/accounts.ts';
import { acceptInvitationAs, findInvitationByToken, type ReceivedInvitationRow } from '../services/orgs/invitations.ts';
import { SignInError } from '../services/people/sign-in-port.ts';
import { loginCookie } from '../sign-in/login-cookie.ts';
import {
  fixedEmailField,
  isRepeated,
  nameField,
  newPasswordFields,
  newPasswordShape,
  personName,
  REPEATED,
  unseen,
} from './parts/fields.ts';
import { EMPTY_FORM, errorSummary, form, hidden, readForm, type FormState } from './parts/form.ts';
import { refusedForm, sentence, statusOf } from './parts/refusals.ts';
import { signInPath } from './sign-in.ts';
import {
  pathWith,
  shown,
  type Page,
  type ShownPage,
  type Site,
  type SiteRequest,
  type SignedInVisitor,
} from './parts/site.ts';

const tokenSchema = z.object({ token: unseen });
const accountSchema = z.object({ token: unseen, name: personName, ...newPasswordShape }).refine(isRepeated, REPEATED);

export const invitationPage: Page = {
  path: '/invitation',
  get: async (site, request) => {
    const token = request.query('token');
    const invitation = await findInvitationByToken(site.context.db, token);
    if (invitation?.status !== 'pending') return gone(invitation);
    if (request.visitor !== null) return visitorPage(invitation, token, request.visitor);
    return (await hasAccount(site.context, invitation.email))
      ? signInFirst(invitation, token)
      : accountForm(invitation, token, EMPTY_FORM, {});
  },
  post: async (site, request) => {
    const token = readForm(tokenSchema, request.form).read?.token ?? '';
    const invitation = await findInvitationByToken(site.context.db, token);
    if (invitation?.status !== 'pending') return gone(invitation);
    return request.visitor === null
      ? await signUp(site, request, invitation, token)
      : await accept(site, request, {
          invitation,
          token,
          userId: request.visitor.user.id,
          loginId: request.visitor.loginId,
        });
  },
};

async function signUp(
  site: Site,
  request: SiteRequest,
  invitation: ReceivedInvitationRow,
  token: string,
): Promise<ShownPage> {
  const { read, wrong } = readForm(accountSchema, request.form);
  if (wrong !== undefined) return accountForm(invitation, token, wrong, { status: 400, failed: true });
  const { name, password } = read;
  const { context, signIn } = site;
  try {
    await signIn.throttle('sign-up', [addressKey(request.caller.address), domainKey(invitation.email)]);
    const { userId } = await signUpByInvitation(signIn, invitation, { name, password });
    const login = await signIn.createLogin(userId, request.caller);
    const cookie = loginCookie(context.settings.publicUrl, login);
    return { ...(await accept(site, request, { invitation, token, userId, loginId: login.loginId })), cookie };
  } catch (error) {
    if (!(error instanceof SignInError)) throw error;
    if (error.refusal === 'email_taken') return signInFirst(invitation, token);
    return accountForm(invitation, token, refusedForm({ name }, error), statusOf(error));
  }
}

interface Accepting {
  invitation: ReceivedInvitationRow;
  token: string;
  userId: string;
  loginId: string;
}

async function accept(
  { context }: Site,
  { requestId }: SiteRequest,
  { invitation, token, userId, loginId }: Accepting,
): Promise<ShownPage> {
  try {
    await acceptInvitationAs(context, { token, userId, actor: { kind: 'session', id: loginId, userId, requestId } });
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    return notAccepted(error);
  }
  return shown(
    `Welcome to ${invitation.orgName}`,
    html`<p>You are a member of <strong>${invitation.orgName}</strong> now, as ${roleText(invitation)}.</p>
      <p><a href="/sign-in">Continue</a></p>`,
  );
}

/** Page for a refusal by the rules of invitations. */
function notAccepted(error: CodedError): ShownPage {
  const known: Partial<Record<string, number>> = {
    invitation_not_found: 410,
    invitation_not_pending: 410,
    already_member: 409,
    invitation_for_another: 403,
    email_not_verified: 403,
  };
  const status = known[error.code];
  if (status === undefined) throw error;
  const verify =
    error.code === 'email_not_verified' ? html`<p><a href="/verify-email">Verify your email address</a></p>` : html``;
  return shown(
    'The invitation was not accepted',
    html`<p>${sentence(error.message)}</p>
      ${verify}`,
    { status },
  );
}

function visitorPage(invitation: ReceivedInvitationRow, token: string, { user }: SignedInVisitor): ShownPage {
  if (user.email.toLowerCase() !== invitation.email) {
    const returnTo = hidden('return_to', invitationPath(token));
    return invitationShown(
      invitation,
      html`<p>
          You are signed in as <strong>${user.email}</strong>. Sign out, then continue as
          <strong>${invitation.email}</strong>.
        </p>
        ${form('/sign-out', html`${returnTo}<button type="submit">Sign out and continue</button>`)}`,
      { status: 403 },
    );
  }
  if (!user.emailVerified) {
    return invitationShown(
      invitation,
      html`<p>
        To accept it, <a href="/verify-email">verify your email address</a> first. Then open the link of the invitation
        again.
      </p>`,
      { status: 403 },
    );
  }
  return invitationShown(
    invitation,
    form('/invitation', html`${hidden('token', token)}<button type="submit">Accept the invitation</button>`),
    {},
  );
}

function signInFirst(invitation: ReceivedInvitationRow, token: string): ShownPage {
  return invitationShown(
    invitation,
    html`<p>There is an account with this address. Sign in with it to accept.</p>
      <p><a class="button" href="${signInPath(invitationPath(token))}">Sign in</a></p>`,
    {},
  );
}

function accountForm(
  invitation: ReceivedInvitationRow,
  token: string,
  state: FormState,
  more: Parameters<typeof shown>[2],
): ShownPage {
  const fields = html`${hidden('token', token)} ${fixedEmailField(state, invitation.email)} ${nameField(state)}
    ${newPasswordFields(state)} <button type="submit">Create the account and accept</button>`;
  const content = html`<p>You have no account yet: create one here.</p>
    ${form('/invitation', fields)}`;
  return invitationShown(invitation, content, more, errorSummary(state));
}

function invitationShown(
  invitation: ReceivedInvitationRow,
  content: Html,
  more: Parameters<typeof shown>[2],
  before: Html = html``,
): ShownPage {
  return shown(
    `Join ${invitation.orgName}`,
    html`${before}
      <p>
        You are invited to the org <strong>${invitation.orgName}</strong> as ${roleText(invitation)}, with the address
        ${html`<strong>${invitation.email}</strong>`}.
      </p>
      ${content}`,
    more,
  );
}

function gone(invitation: ReceivedInvitationRow | null): ShownPage {
  const became =
    invitation?.status === 'accepted'
      ? 'The invitation was already accepted.'
      : invitation?.status === 'revoked'
        ? 'The invitation was revoked, or a newer one replaced it.'
        : invitation?.status === 'expired'
          ? 'The invitation has expired.'
          : 'No invitation has this link: the link is incomplete, or a newer mail replaced it.';
  return shown(
    'This link does not work',
    html`<p>${became}</p>
      <p>Ask the sender for a new invitation.</p>`,
    { status: 410 },
  );
}

function roleText({ role }: ReceivedInvitationRow): string {
  return `${/^[aeiou]/.test(role) ? 'an' : 'a'} ${role}`;
}

function invitationPath(token: string): string {
  return pathWith('/invitation', { token });
}
