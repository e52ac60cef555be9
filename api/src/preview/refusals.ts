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

const REQUEST_NEW_LINK = html`<p>Ask the sender of the link for a new one.</p>`;

export const NO_LINK: Refusal = {
  code: 'preview_link_required',
  title: 'A link is required',
  message: 'this preview requires a valid link: open the complete link that you were given',
  content: html`<p>This preview requires a valid link. Open the complete link that you were given.</p>
    <p>If the link fails again, your browser may be blocking cookies of this address.</p>`,
};

export const INVALID_LINK: Refusal = {
  code: 'preview_link_invalid',
  title: 'This link does not work',
  message: 'the link is incomplete, or belongs to another preview',
  content: html`<p>The link is incomplete, or belongs to another preview.</p>
    ${REQUEST_NEW_LINK}`,
};

export const KEY_REFUSED: Refusal = {
  code: 'unauthenticated',
  title: 'This API key does not open the preview',
  message: 'the API key is invalid, has failed too often from this address, or lacks sandbox.preview for this sandbox',
  content: html`<p>The API key is invalid, or may not open this preview.</p>`,
};

export const EXPIRED: Refusal = {
  code: 'preview_link_expired',
  title: 'This link has expired',
  message: 'the link has expired; ask for a new one',
  content: html`<p>Preview links are valid for a limited time.</p>
    ${REQUEST_NEW_LINK}`,
};

export const REVOKED: Refusal = {
  code: 'preview_link_revoked',
  title: 'This link was revoked',
  message: 'the link was revoked; ask for a new one',
  content: html`<p>A member of the team revoked this link.</p>
    ${REQUEST_NEW_LINK}`,
};

export const NOT_FOUND: Refusal = {
  code: 'preview_not_found',
  title: 'This preview does not exist',
  message: 'the preview does not exist, or its sandbox was deleted',
  content: html`<p>No preview has this address, or its sandbox was deleted.</p>`,
};

export const SIGN_IN_FIRST: Refusal = {
  code: 'preview_link_required',
  title: 'Sign in first',
  message: 'this link requires a signed-in member of the team: open it in a browser',
  content: html`<p>This preview requires a member of the team. Open the link again to sign in.</p>`,
};

export const CROSS_ORIGIN: Refusal = {
  code: 'preview_cross_origin',
  title: 'This request came from another page',
  message:
    "a page of another origin sent this request: it may not use the visitor's access. " +
    'A frame requires a link with embeddable: true',
  content: html`<p>A page of another address opened this preview, or showed it in a frame. Open it yourself.</p>
    <p><a href="" target="_top">Open the preview</a></p>`,
};

export const BAD_HOST: Refusal = {
  code: 'invalid_request',
  title: 'Invalid request',
  message: 'the request must have one header Host, and a target that matches it',
  content: html`<p>The request names its site ambiguously.</p>`,
};

export const BAD_FRAMING: Refusal = {
  code: 'invalid_request',
  title: 'Invalid request',
  message: 'the length of the request body is ambiguous',
  content: html`<p>The length of the request body is ambiguous.</p>`,
};

export const NOT_SUPPORTED: Refusal = {
  code: 'preview_not_supported',
  title: 'Previews do not support this request',
  message: 'Transfer-Encoding must be chunked',
  content: html`<p>Previews do not support the transfer encoding of the request body.</p>`,
};

/** `byTeam`: the visitor is a member of the team and can wake the sandbox. */
export function asleep(byTeam: boolean): Refusal {
  return {
    code: 'preview_sandbox_asleep',
    title: 'The sandbox is asleep',
    message: 'the sandbox is asleep: wake it (POST /v1/sandboxes/{sandboxId}/wake), then try again',
    content: byTeam
      ? html`<p>
            Nothing is lost. Wake it where you manage your sandboxes, or with <code>POST /v1/sandboxes/…/wake</code>,
            then reload this page.
          </p>
          <p>A project can also wake its sandboxes when a preview is opened (<code>wakeOnUse</code>).</p>`
      : html`<p>Nothing is lost. Ask the sender of the link to wake the sandbox, then reload this page.</p>`,
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
  title: 'The sandbox is not running',
  message: "the sandbox's VM was lost, or could not be created",
  content: html`<p>
    Its VM was lost, or could not be created. The owner of the sandbox can see why, and may be able to wake it.
  </p>`,
};

export const NOT_WOKEN: Refusal = {
  code: 'preview_sandbox_failed',
  title: 'The sandbox could not be woken',
  message: 'the sandbox is asleep, and waking it for this request failed',
  content: html`<p>
      It is asleep, and could not be woken: its host has too little capacity, or the plan allows no further sandbox
      awake.
    </p>
    <p>Try again in a while.</p>`,
  retryAfterSeconds: 30,
};

export const UNREACHABLE: Refusal = {
  code: 'sandbox_unreachable',
  title: 'The sandbox does not respond',
  message: "the sandbox's VM did not respond; try again in a few seconds",
  content: html`<p>Its VM did not respond. It may be busy, or falling asleep. Try again in a few seconds.</p>`,
  retryAfterSeconds: 3,
};

export function portRefused(port: number): Refusal {
  return {
    code: 'port_refused',
    title: `Nothing listens on port ${port}`,
    message: `nothing listens on port ${port} of the sandbox`,
    content: html`<p>The sandbox is running, but no app in it listens on port <strong>${port}</strong>.</p>
      <p>The app may still be starting, or listen on another port. Reload this page once it runs.</p>`,
  };
}

export const PORT_FORBIDDEN: Refusal = {
  code: 'port_forbidden',
  title: 'This port is reserved',
  message: "the port is reserved for Berth's guest daemon",
  content: html`<p>The port is reserved for Berth’s guest daemon.</p>`,
};

/** `bound`: the limit, with its setting. */
export function tooManyConnections(bound: string): Refusal {
  return {
    code: 'too_many_connections',
    title: 'Too many connections',
    message: `the limit of open connections is reached: ${bound}; try again in a few seconds`,
    content: html`<p>The limit of open connections is reached: ${bound}.</p>
      <p>Close other tabs that show previews, or try again in a few seconds.</p>`,
    retryAfterSeconds: 3,
  };
}

export function tooManyRequests(limit: string, retryAfterSeconds: number): Refusal {
  return {
    code: 'rate_limited',
    title: 'Too many requests',
    message: `too many requests from this address: the limit is ${limit}; retry in ${retryAfterSeconds} s`,
    content: html`<p>Too many requests came from your address: the limit is ${limit}.</p>
      <p>Try again in a few seconds.</p>`,
    retryAfterSeconds,
  };
}

export const BROKEN_RESPONSE: Refusal = {
  code: 'preview_answer_broken',
  title: 'The app did not respond',
  message: 'the app closed the connection before it responded, or did not send valid HTTP',
  content: html`<p>
    The app closed the connection before it responded, or did not send valid HTTP. Its log may have the reason.
  </p>`,
};

export const TOO_SLOW: Refusal = {
  code: 'preview_timed_out',
  title: 'The app takes too long',
  message: 'the app did not respond in time',
  content: html`<p>The app accepted the request, and did not respond in time.</p>`,
};

export const UPLOAD_STALLED: Refusal = {
  code: 'preview_upload_stalled',
  title: 'The request did not arrive',
  message: 'the request body stalled for too long',
  content: html`<p>The request body stalled for too long. Try again.</p>`,
};

export const STOPPING: Refusal = {
  code: 'shutting_down',
  title: 'The service is restarting',
  message: 'this API replica is shutting down; retry',
  content: html`<p>This replica of the service is shutting down, and others take over. Reload this page.</p>`,
  retryAfterSeconds: 1,
};

export const FAULT: Refusal = {
  code: 'internal',
  title: 'Something went wrong',
  message: "internal error; the header x-request-id finds it in the service's log",
  content: html`<p>The service failed. Try again; if it fails again, tell its operator.</p>`,
};
