// Refusals of preview requests that are not forwarded, or get no response from the app: code, texts
// and retry delay. A visitor without a valid link learns nothing about the sandbox.
import { ERRORS, type ErrorCode } from '@berth/contract/route/errors.ts';
import { html, type Html } from '../rules/html.ts';

export interface Refusal {
  code: ErrorCode;
  title: string;
  /** In JSON. */
  message: string;
  /** In HTML. */
  content: Html;
  retryAfterSeconds?: number;
}

export function statusOf({ code }: Refusal): number {
  return ERRORS[code].status;
}

const ASK_AGAIN = html`<p>Ask whoever gave you the link for another one.</p>`;

export const NO_LINK: Refusal = {
  code: 'preview_link_required',
  title: 'A link is needed here',
  message: 'previews open with a link that is good for them: open the whole link that you were given',
  content: html`<p>This preview opens with a link that somebody gave you. Open it once more, whole.</p>
    <p>If it did not work before either, your browser may be refusing cookies of this address.</p>`,
};

export const INVALID_LINK: Refusal = {
  code: 'preview_link_invalid',
  title: 'This link does not work',
  message: 'the link was not copied whole, or is for another preview',
  content: html`<p>It was not copied whole, or is for another preview.</p>
    ${ASK_AGAIN}`,
};

export const EXPIRED: Refusal = {
  code: 'preview_link_expired',
  title: 'This link has expired',
  message: 'the link has expired; ask for another one',
  content: html`<p>Links to previews are good for a time only, and this one’s is over.</p>
    ${ASK_AGAIN}`,
};

export const REVOKED: Refusal = {
  code: 'preview_link_revoked',
  title: 'This link was revoked',
  message: 'the link was revoked; ask for another one',
  content: html`<p>Somebody has ended this link, so that it opens nothing any more.</p>
    ${ASK_AGAIN}`,
};

export const NOT_FOUND: Refusal = {
  code: 'preview_not_found',
  title: 'There is nothing here',
  message: 'there is no such preview, or its sandbox is gone',
  content: html`<p>No preview has this address, or its sandbox is gone for good.</p>`,
};

export const SIGN_IN_FIRST: Refusal = {
  code: 'preview_link_required',
  title: 'Sign in first',
  message: 'this link is for signed-in members of the team: open it in a browser',
  content: html`<p>This preview is for members of the team. Open it once more, to sign in.</p>`,
};

export const BAD_HOST: Refusal = {
  code: 'invalid_request',
  title: 'This request cannot be read',
  message: 'the request must have one header Host, and a target that agrees with it',
  content: html`<p>It does not say for sure which site it is for.</p>`,
};

export const BAD_FRAMING: Refusal = {
  code: 'invalid_request',
  title: 'This request cannot be read',
  message: 'the request does not say for sure where its body ends',
  content: html`<p>It does not say for sure where its body ends.</p>`,
};

export const NOT_SUPPORTED: Refusal = {
  code: 'preview_not_supported',
  title: 'Previews do not pass this on',
  message: 'Transfer-Encoding can be chunked and nothing else',
  content: html`<p>The body of the request is encoded in a way that is not passed on.</p>`,
};

/** `byTeam`: the visitor is a member of the team and can wake the sandbox. */
export function asleep(byTeam: boolean): Refusal {
  return {
    code: 'preview_sandbox_asleep',
    title: 'The sandbox is asleep',
    message: 'the sandbox sleeps: wake it (POST /v1/sandboxes/{sandboxId}/wake), then try again',
    content: byTeam
      ? html`<p>
            Nothing is lost. Wake it where you manage your sandboxes, or with <code>POST /v1/sandboxes/…/wake</code>,
            then reload this page.
          </p>
          <p>A project can also let its sandboxes be woken by whoever opens a preview (<code>wakeOnUse</code>).</p>`
      : html`<p>What it showed is not lost. Ask whoever gave you the link to wake it, then reload this page.</p>`,
    retryAfterSeconds: 30,
  };
}

export const STARTING: Refusal = {
  code: 'preview_sandbox_starting',
  title: 'The sandbox is starting',
  message: 'the sandbox is starting; try again in a few seconds',
  content: html`<p>This can take a minute. Reload this page in a few seconds.</p>`,
  retryAfterSeconds: 3,
};

export const FAILED: Refusal = {
  code: 'preview_sandbox_failed',
  title: 'The sandbox does not run',
  message: 'the machine of the sandbox was lost, or could not be made',
  content: html`<p>
    Its machine was lost, or could not be made. Who manages the sandbox can see why, and may be able to wake it.
  </p>`,
};

export const NOT_WOKEN: Refusal = {
  code: 'preview_sandbox_failed',
  title: 'The sandbox could not be woken',
  message: 'the sandbox was to be woken for this, but could not be',
  content: html`<p>
      It sleeps, and could not be woken just now: there is no room for its machine, or the plan allows no further one
      awake.
    </p>
    <p>Try again in a while.</p>`,
  retryAfterSeconds: 30,
};

export const UNREACHABLE: Refusal = {
  code: 'sandbox_unreachable',
  title: 'The sandbox does not answer',
  message: 'the machine of the sandbox did not answer; try again in a few seconds',
  content: html`<p>Its machine did not answer. It may be busy, or on its way to sleep. Try again in a few seconds.</p>`,
  retryAfterSeconds: 3,
};

export function nothingListens(port: number): Refusal {
  return {
    code: 'port_refused',
    title: `Nothing listens on port ${port}`,
    message: `nothing listens on port ${port} of the sandbox`,
    content: html`<p>The sandbox runs, but no app in it takes connections on port <strong>${port}</strong>.</p>
      <p>It may still be starting, or listen on another port. Reload this page once it runs.</p>`,
  };
}

export const PORT_FORBIDDEN: Refusal = {
  code: 'port_forbidden',
  title: 'This port is not for previews',
  message: "the port is one that the sandbox's own service holds",
  content: html`<p>The sandbox’s own service holds it.</p>`,
};

export const TOO_MANY_CONNECTIONS: Refusal = {
  code: 'too_many_connections',
  title: 'Too many at once',
  message: 'the sandbox has as many connections open as it may; try again in a few seconds',
  content: html`<p>
    The sandbox has as many connections open as it may. Close other tabs that show it, or try again in a few seconds.
  </p>`,
  retryAfterSeconds: 3,
};

export const BROKEN_RESPONSE: Refusal = {
  code: 'preview_answer_broken',
  title: 'The app did not answer',
  message: 'the app closed the connection before it had answered, or answered what is no HTTP',
  content: html`<p>
    It closed the connection before it had answered, or answered what is no HTTP. Its own log may say why.
  </p>`,
};

export const TOO_SLOW: Refusal = {
  code: 'preview_timed_out',
  title: 'The app takes too long',
  message: 'the app did not answer in time',
  content: html`<p>It has taken the request, and did not answer in time.</p>`,
};

export const UPLOAD_STALLED: Refusal = {
  code: 'preview_upload_stalled',
  title: 'The request did not arrive',
  message: 'nothing more of the request came for too long',
  content: html`<p>Nothing more of it came for too long. Try again.</p>`,
};

export const STOPPING: Refusal = {
  code: 'shutting_down',
  title: 'One moment',
  message: 'this instance is stopping; try again',
  content: html`<p>This part of the service is being stopped, and others take over. Reload this page.</p>`,
  retryAfterSeconds: 1,
};

export const FAULT: Refusal = {
  code: 'internal',
  title: 'Something went wrong',
  message: 'a fault in the service; the header x-request-id finds it in the log',
  content: html`<p>Something is wrong with the service. Try again; if it stays so, tell its operator.</p>`,
};
