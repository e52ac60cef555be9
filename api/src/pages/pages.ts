// Registers the pages on the server, in an encapsulated plugin: form bodies, protection headers,
// the signed-in visitor, and failures shown as pages.
//
//   refuse cross-site form -> read body -> find login -> page -> response
import { ERRORS } from '@berth/contract/route/errors.ts';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { failureOf } from '../http/answers/errors.ts';
import type { EntryPoint } from '../http/entry-point.ts';
import type { FormParser } from '../http/requests/body.ts';
import { html } from '../rules/html.ts';
import { findAccount } from '../services/people/accounts.ts';
import type { ServiceContext } from '../services/context/context.ts';
import type { PageSignIn } from '../services/people/factors-port.ts';
import { SignInError } from '../services/people/sign-in-port.ts';
import { readCookie, readLoginCookie } from '../sign-in/login-cookie.ts';
import { accountPage } from './account.ts';
import { billingReturnPage } from './billing-return.ts';
import { confirmPage } from './confirm.ts';
import { devicePage } from './device.ts';
import { forgotPasswordPage } from './forgot-password.ts';
import { invitationPage } from './invitation.ts';
import { document } from './parts/layout.ts';
import { PASSKEY_SCRIPT, PASSKEY_SCRIPT_FILE } from './parts/passkey-script.ts';
import { passkeyPage } from './passkey.ts';
import { previewPage } from './preview.ts';
import { contentPolicy, isForeign, PAGE_HEADERS } from './parts/protection.ts';
import { sentence, statusOf } from './parts/refusals.ts';
import { resetPasswordPage } from './reset-password.ts';
import { secondFactorPage } from './second-factor.ts';
import { signInPage } from './sign-in.ts';
import { signInsPage } from './sign-ins.ts';
import { signOutPage } from './sign-out.ts';
import {
  shown,
  type Page,
  type PageAnswer,
  type ShownPage,
  type Site,
  type SiteRequest,
  type SignedInVisitor,
} from './parts/site.ts';
import { STYLE } from './parts/style.ts';
import { verifyEmailPage } from './verify-email.ts';
import { welcomePage } from './welcome.ts';

interface PagesOptions {
  context: ServiceContext;
  signIn: PageSignIn;
  parseForms: FormParser;
}

const PAGES: readonly Page[] = [
  signInPage,
  secondFactorPage,
  passkeyPage,
  accountPage,
  signOutPage,
  signInsPage,
  confirmPage,
  forgotPasswordPage,
  resetPasswordPage,
  verifyEmailPage,
  welcomePage,
  invitationPage,
  devicePage,
  previewPage,
  billingReturnPage,
];

const FORM_BYTES = 16 * 1024;

export function pages(options: PagesOptions): EntryPoint {
  return { register: (app) => void app.register(plugin, options) };
}

async function plugin(app: FastifyInstance, { context, signIn, parseForms }: PagesOptions): Promise<void> {
  const inFlight = new Set<Promise<void>>();
  app.addHook('onClose', async () => void (await Promise.all(inFlight)));
  const site: Site = {
    context,
    signIn,
    runInBackground: (what, work) => {
      const going = work()
        .catch((error: unknown) => context.log.warn({ err: error }, `${what} could not be sent`))
        .finally(() => inFlight.delete(going));
      inFlight.add(going);
    },
  };
  app.removeAllContentTypeParsers();
  parseForms(app);
  app.addHook('onRequest', async (request, reply) => {
    void reply.headers(PAGE_HEADERS);
    if (request.method === 'POST' && isForeign(request.headers, context.settings.publicUrl))
      await send(reply, FOREIGN, null, context.settings.publicUrl);
  });
  app.setErrorHandler((error, request, reply) =>
    send(reply, failurePage(error, request), null, context.settings.publicUrl),
  );
  app.get('/pages.css', (_request, reply) =>
    reply
      .header('content-type', 'text/css; charset=utf-8')
      .header('cache-control', 'public, max-age=31536000, immutable')
      .send(STYLE),
  );
  app.get(PASSKEY_SCRIPT_FILE, (_request, reply) =>
    reply
      .header('content-type', 'text/javascript; charset=utf-8')
      .header('cache-control', 'public, max-age=31536000, immutable')
      .send(PASSKEY_SCRIPT),
  );
  for (const page of PAGES) register(app, site, page);
}

function register(app: FastifyInstance, site: Site, page: Page): void {
  app.get(page.path, async (request, reply) => {
    const siteRequest = await siteRequestOf(site, request);
    return await send(reply, await page.get(site, siteRequest), siteRequest.visitor, site.context.settings.publicUrl);
  });
  const { post } = page;
  if (post === undefined) return;
  app.post(page.path, { bodyLimit: FORM_BYTES }, async (request, reply) => {
    const siteRequest = await siteRequestOf(site, request);
    return await send(reply, await post(site, siteRequest), siteRequest.visitor, site.context.settings.publicUrl);
  });
}

async function siteRequestOf(site: Site, request: FastifyRequest): Promise<SiteRequest> {
  const query = request.query as Record<string, unknown>;
  return {
    query: (name) => (typeof query[name] === 'string' ? query[name] : ''),
    cookie: (name) => readCookie(name, request.headers.cookie),
    form: request.body,
    visitor: await visitorOf(site, request),
    caller: { address: request.ip, userAgent: request.headers['user-agent'] ?? null },
    requestId: request.id,
  };
}

async function visitorOf({ context, signIn }: Site, request: FastifyRequest): Promise<SignedInVisitor | null> {
  const credential = readLoginCookie(context.settings.publicUrl, request.headers.cookie);
  const login = credential === null ? null : await signIn.findLogin(credential);
  const user = login === null ? null : await findAccount(context, login.userId);
  return login === null || user === null ? null : { loginId: login.loginId, user };
}

async function send(
  reply: FastifyReply,
  answer: PageAnswer,
  visitor: SignedInVisitor | null,
  publicUrl: string,
): Promise<FastifyReply> {
  if (answer.cookie !== undefined) void reply.header('set-cookie', [answer.cookie].flat());
  if (answer.kind === 'redirect') return reply.redirect(answer.to, 303);
  if (answer.formsLeadTo !== undefined || answer.script === true) {
    const script = answer.script === true ? publicUrl + PASSKEY_SCRIPT_FILE : null;
    void reply.header('content-security-policy', contentPolicy(answer.formsLeadTo, script));
  }
  if (answer.retryAfterSeconds !== undefined)
    void reply.header('retry-after', String(Math.max(1, Math.ceil(answer.retryAfterSeconds))));
  return reply
    .code(answer.status ?? 200)
    .type('text/html; charset=utf-8')
    .send(document(answer, visitor));
}

const FOREIGN = shown(
  'This form was sent from another site',
  html`<p>The form came from a page of another site and was rejected. Nothing was changed.</p>
    <p>If you sent the form yourself, open the page again and try again.</p>`,
  { status: 403 },
);

/** Page for errors that a page does not handle itself. */
function failurePage(error: unknown, request: FastifyRequest): ShownPage {
  if (error instanceof SignInError)
    return shown('That did not work', html`<p>${sentence(error.message)}</p>`, statusOf(error));
  const coded = failureOf(error, request);
  const { status } = ERRORS[coded.code];
  const what =
    coded.code === 'unsupported_media_type'
      ? html`<p>The request must be a form of these pages.</p>`
      : status === 500
        ? html`<p>
            The service failed. Try again; if it fails again, tell its operator this id:
            <code>${request.id}</code>
          </p>`
        : html`<p>${sentence(coded.message)}</p>`;
  return shown('That did not work', what, { status, retryAfterSeconds: coded.retryAfterSeconds });
}
