// The page on which a person approves a device's sign-in as themselves (RFC 8628). Shows the code
// for comparison and explains what approval means.
import { z } from 'zod';
import { html } from '../rules/html.ts';
import { addressKey, userKey } from '../rules/access/throttle.ts';
import { SignInError, type PendingDevice } from '../services/people/sign-in-port.ts';
import { confirmPath, isVisitorFresh } from './confirm.ts';
import { unseen } from './parts/fields.ts';
import { EMPTY_FORM, errorSummary, field, hidden, readForm, withError, form, type FormState } from './parts/form.ts';
import { sentence, statusOf } from './parts/refusals.ts';
import { signInPath } from './sign-in.ts';
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

const schema = z.object({ user_code: unseen, decision: z.enum(['approve', 'deny', '']).catch('') });
const CODE_CHARACTERS = 20;
/** Limit on the client's name, which is chosen by the client. */
const CLIENT_CHARACTERS = 60;
const UNKNOWN =
  'No device is waiting with this code. Codes expire after a few minutes: check the code that the device shows now.';

export const devicePage: Page = {
  path: '/device',
  get: async (site, request) => {
    const code = request.query('user_code').slice(0, CODE_CHARACTERS);
    if (request.visitor === null) return redirect(signInPath(pathWith('/device', { user_code: code })));
    if (code === '') return codeForm(EMPTY_FORM, {});
    if (!(await isVisitorFresh(site, request.visitor)))
      return redirect(confirmPath(pathWith('/device', { user_code: code })));
    return await showDevice(site, request, request.visitor, code);
  },
  post: async (site, request) => {
    const { user_code: typed = '', decision = '' } = readForm(schema, request.form).read ?? {};
    const code = typed.trim().slice(0, CODE_CHARACTERS);
    const { visitor } = request;
    if (visitor === null) return redirect(signInPath(pathWith('/device', { user_code: code })));
    if (code === '') {
      return codeForm(withError({}, 'user_code', 'Enter the code that the device shows'), {
        status: 400,
        failed: true,
      });
    }
    // An approved device counts as freshly signed in.
    const mayApprove = decision !== 'approve' || (await isVisitorFresh(site, visitor));
    if (decision === '' || !mayApprove) return redirect(pathWith('/device', { user_code: code }));
    try {
      await throttle(site, request, visitor);
      await site.signIn.decideDevice(code, visitor.user.id, decision, visitor.loginId);
    } catch (error) {
      return refused(error, code);
    }
    return decision === 'approve' ? APPROVED : DENIED;
  },
};

async function showDevice(
  site: Site,
  request: SiteRequest,
  visitor: SignedInVisitor,
  code: string,
): Promise<ShownPage> {
  let device: PendingDevice | null;
  try {
    await throttle(site, request, visitor);
    device = await site.signIn.findDevice(code);
  } catch (error) {
    return refused(error, code);
  }
  if (device === null)
    return codeForm(withError({ user_code: code }, 'user_code', UNKNOWN), { status: 400, failed: true });
  if (device.status !== 'pending') return DECIDED;
  return decisionForm(device, visitor);
}

/** Codes are short enough to be guessed with enough attempts. */
async function throttle({ signIn }: Site, { caller }: SiteRequest, { user }: SignedInVisitor): Promise<void> {
  await signIn.throttle('device-code', [userKey(user.id), addressKey(caller.address)]);
}

function refused(error: unknown, code: string): ShownPage {
  if (!(error instanceof SignInError)) throw error;
  if (error.refusal === 'link_invalid') return DECIDED;
  return codeForm(withError({ user_code: code }, null, sentence(error.message)), statusOf(error));
}

function codeForm(state: FormState, more: Parameters<typeof shown>[2]): ShownPage {
  const fields = html`${field(state, {
      name: 'user_code',
      label: 'Code',
      type: 'text',
      autocomplete: 'off',
      maxLength: CODE_CHARACTERS,
      hint: 'The device or program that you want to sign in shows it.',
      code: true,
    })} <button type="submit">Continue</button>`;
  return shown('Sign in a device', html`${errorSummary(state)} ${form('/device', fields)}`, more);
}

function decisionForm({ userCode, clientId }: PendingDevice, { user }: SignedInVisitor): ShownPage {
  const client = clientId.length > CLIENT_CHARACTERS ? `${clientId.slice(0, CLIENT_CHARACTERS)}…` : clientId;
  const fields = html`${hidden('user_code', userCode)}
    <div class="buttons">
      <button type="submit" name="decision" value="approve">Approve</button>
      <button type="submit" name="decision" value="deny" class="second">Deny</button>
    </div>`;
  return shown(
    'Sign in a device',
    html`<p>
        A program with the unverified name <strong>${client}</strong> asks for your access in all your orgs. It would
        act as you, <strong>${user.email}</strong>.
      </p>
      <p id="compare">Check that the device shows the same code:</p>
      <p class="code" aria-describedby="compare">${userCode}</p>
      <div class="warning">
        <p>
          <strong>Approve only a sign-in that you started yourself</strong>, a moment ago, on your own device. If
          somebody sent you this link or this code, deny it: the sender would get your access.
        </p>
      </div>
      ${form('/device', fields)}`,
  );
}

const APPROVED = shown(
  'The device is signed in',
  html`<p>The device continues within a few seconds. You can close this page.</p>
    <p class="aside">
      If that was a mistake, <a href="/forgot-password">choose a new password</a>: this ends every sign-in of your
      account.
    </p>`,
);

const DENIED = shown('The device was denied', html`<p>The device gets no access. You can close this page.</p>`);

const DECIDED = shown(
  'This code is no longer valid',
  html`<p>The code was already approved or denied, or has expired.</p>
    <p><a href="/device">Enter another code</a></p>`,
  { status: 410 },
);
