// A client's preview request: headers for the app, admission, refusal, and the log line.
// exchange.ts and web-socket.ts do the proxying.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { PREVIEW_HEADERS } from '@berth/contract/previews/previews.ts';
import { newRequestId } from '../http/answers/request-id.ts';
import { outcomeOf } from '../http/answers/request-log.ts';
import { askingForCookie, takeToken } from '../rules/previews/credentials.ts';
import type { PreviewPlace } from '../rules/previews/host.ts';
import { localOrigin, localUrl } from '../rules/previews/local-origin.ts';
import { judgeSender } from '../rules/previews/sender.ts';
import type { PreviewAccess } from '../services/previews/access.ts';
import { admit, readmit, type Admission, type Admitted, type Visit } from './admission.ts';
import { requestHeaders, type CookieRules } from './headers.ts';
import { forward, redirect, sendRefusal } from './page.ts';
import { programCredential } from './program.ts';
import { BAD_FRAMING, CROSS_ORIGIN, NOT_SUPPORTED, SIGN_IN_FIRST, type Refusal } from './refusals.ts';
import type { HeadChanges } from './response-head.ts';
import type { PreviewRuntime } from './runtime.ts';

/** Printable ASCII. */
const SAFE_TARGET = /^\/[!-~]*$/;

export class PreviewRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly place: PreviewPlace;
  readonly id = newRequestId();
  /** Headers for the app. */
  headers: IncomingHttpHeaders = {};
  /** Path and query for the app, without preview tokens. */
  target = '/';
  hasBody = false;
  /** Logged: why the request failed. */
  errorCode: string | undefined;
  readonly #runtime: PreviewRuntime;
  readonly #startedAtMs = performance.now();
  #origin = '';
  /** From the URL. */
  #token: string | null = null;
  /** Authenticated by a header, which browsers do not send. */
  #isByProgram = false;
  #access: PreviewAccess | undefined;
  #closed: AbortController | undefined;
  /** Ends the count of an anonymous visitor. */
  #leave: (() => void) | undefined;

  constructor(runtime: PreviewRuntime, request: IncomingMessage, response: ServerResponse, place: PreviewPlace) {
    this.#runtime = runtime;
    this.request = request;
    this.response = response;
    this.place = place;
    // Errors are followed by 'close', which is handled below.
    const onError = (error: Error): void =>
      runtime.context.log.debug({ err: error, reqId: this.id }, 'connection of a preview client failed');
    request.on('error', onError);
    response.on('error', onError);
    response.once('close', () => this.#onClose());
  }

  /** The response was sent, or the client is gone. */
  get closed(): boolean {
    return this.response.destroyed || this.response.closed;
  }

  /** Resolves with undefined when the request was refused, redirected or closed. */
  async admit(): Promise<Admitted | undefined> {
    const { request, place } = this;
    const { cookies, address, proto } = this.#runtime;
    const given = request.headers;
    const from = address.of(request);
    const method = request.method ?? 'GET';
    const { token, target, asked } = takeToken(request.url ?? '/');
    const hasToken = token !== null;
    this.#token = token;
    const program = programCredential(given, hasToken || given.cookie?.includes(`${cookies.name}=`) === true);
    this.#isByProgram = program !== null;
    const { headers, cookie, hasBody } = requestHeaders(given, method, this.#cookies, {
      host: new URL(localOrigin(place.port)).host,
      'x-forwarded-for': from,
      'x-berth-forwarded-host': given.host ?? '',
      'x-berth-forwarded-proto': proto,
    });
    const ownOrigin = new URL(`${proto}://${given.host ?? ''}`).origin;
    for (const name of ['origin', 'referer'] as const)
      if (headers[name] !== undefined) headers[name] = localUrl(headers[name], ownOrigin, place.port);
    this.headers = headers;
    this.target = target;
    this.hasBody = hasBody;
    const visit: Visit = { ...place, token, cookie, target, address: from, isFramed: false };
    this.#origin = ownOrigin;
    if (program !== null) {
      Object.assign(visit, { token: program.token, tokenInHeader: true, apiKey: program.apiKey });
      delete headers[program.header];
    } else {
      const isWebSocket = given.upgrade !== undefined;
      const { previewUrl } = this.#runtime.context.settings;
      const sender = judgeSender(previewUrl, { method, isWebSocket, hasToken, ownOrigin, headers: given });
      if (sender === 'rejected') return this.refuse(CROSS_ORIGIN);
      visit.isFramed = sender === 'if_embeddable';
    }
    const admission = await admit(
      this.#runtime,
      visit,
      () => this.#untilClosed(),
      (owner) => this.#enter(from, owner),
    );
    const admitted = this.#apply(admission);
    if (admitted === undefined) return undefined;
    if (hasToken && program === null && SAFE_TARGET.test(target)) {
      const without = this.#targetWithoutToken(admitted.access, token, asked);
      if (without !== null) return this.#openAt(`${ownOrigin}${without}`, admitted.access);
    }
    const encoding = given['transfer-encoding'];
    // Node's parser refuses both together. Request smuggling depends on it, so check again.
    if (encoding !== undefined && given['content-length'] !== undefined) return this.refuse(BAD_FRAMING);
    if (encoding !== undefined && encoding.toLowerCase() !== 'chunked') return this.refuse(NOT_SUPPORTED);
    return admitted;
  }

  /** Admits the request again, by the sandbox row as it is now. For a VM that is not running. */
  async readmit(): Promise<Admitted | undefined> {
    if (this.#access === undefined) throw new Error('the request was not admitted before');
    return this.#apply(await readmit(this.#runtime, this.#access, () => this.#untilClosed()));
  }

  /** Changes to the head of the app's response. */
  headChanges({ setCookie, embeddable, link }: PreviewAccess): HeadChanges {
    const { isTrustworthy } = this.#runtime;
    const origin = this.#origin;
    const token = setCookie !== null && link.kind === 'public' ? this.#token : null;
    return {
      cookies: this.#cookies,
      setCookie,
      place: { origin, port: this.place.port },
      shown: token === null ? null : { url: origin + this.target, token },
      isolation: { embeddable, isTrustworthy },
      // Caches would take a response at the service's address for the service's own.
      noStore: this.request.headers[PREVIEW_HEADERS.host] !== undefined,
    };
  }

  /** Sends the refusal, or aborts a response that has begun. */
  refuse(refusal: Refusal): undefined {
    this.errorCode ??= refusal.code;
    if (this.closed) return;
    const { request, response } = this;
    if (response.headersSent) abort(response);
    else sendRefusal(request, response, refusal, this.id);
  }

  /** Logs the request; never its target or headers, which may carry tokens. */
  log(status: number, more: Readonly<Record<string, unknown>>): void {
    const { request, place, errorCode } = this;
    const link = this.#access?.link;
    this.#runtime.context.log.info(
      {
        reqId: this.id,
        method: request.method,
        status,
        code: errorCode,
        sandboxId: place.sandboxId,
        port: place.port,
        link: link?.kind,
        linkId: link === undefined ? undefined : idOf(link),
        ...more,
        ms: Math.round((performance.now() - this.#startedAtMs) * 10) / 10,
      },
      'preview request',
    );
  }

  /** Siblings set no cookies for programs. */
  get #cookies(): CookieRules {
    const { cookies } = this.#runtime;
    return this.#isByProgram ? { ...cookies, proven: false } : cookies;
  }

  /** The visitor is gone, or has the whole response. */
  leave(): void {
    this.#leave?.();
    this.#leave = undefined;
  }

  #enter(address: string, owner: string): Refusal | undefined {
    const entered = this.#runtime.visitors.enter(address, owner);
    if ('refusal' in entered) return entered.refusal;
    this.#leave = entered.leave;
    // The connection may have closed during the access decision.
    if (this.closed) this.leave();
    return undefined;
  }

  #apply(admission: Admission): Admitted | undefined {
    if (this.closed) return undefined;
    if ('admitted' in admission) {
      this.#access = admission.admitted.access;
      return admission.admitted;
    }
    if ('refusal' in admission) return this.refuse(admission.refusal);
    if (!this.#isNavigation()) return this.refuse(SIGN_IN_FIRST);
    redirect(this.response, admission.signInAt, this.id);
    return undefined;
  }

  /** A browser opens a page, as far as the request shows. */
  #isNavigation(): boolean {
    const { method, headers } = this.request;
    if ((method !== 'GET' && method !== 'HEAD') || headers.upgrade !== undefined) return false;
    const mode = headers['sec-fetch-mode'];
    return mode === undefined ? headers.accept?.includes('text/html') === true : mode === 'navigate';
  }

  /**
   * Target that keeps the token out of the address bar, the history, `Referer` and the app's
   * scripts. Null to respond at the URL with the token: to programs, and on a public link to a
   * browser that did not keep the cookie.
   */
  #targetWithoutToken({ link, setCookie }: PreviewAccess, token: string, asked: boolean): string | null {
    if (!this.#isNavigation()) return null;
    if (link.kind !== 'public') return this.target;
    if (!this.#isBrowser()) return null;
    if (setCookie === null) return this.target;
    return asked ? null : askingForCookie(this.target, token);
  }

  /** Browsers send the former to https and localhost, and the latter on plain http, too. */
  #isBrowser(): boolean {
    const { 'sec-fetch-mode': mode, 'upgrade-insecure-requests': upgrade } = this.request.headers;
    return mode !== undefined || upgrade === '1';
  }

  #openAt(location: string, { setCookie }: PreviewAccess): undefined {
    // A redirect would keep a sibling as the sender, whom the next request's cookie does not admit.
    const send = this.request.headers['sec-fetch-site'] === 'same-site' ? forward : redirect;
    send(this.response, location, this.id, setCookie);
  }

  #untilClosed(): AbortSignal {
    this.#closed ??= new AbortController();
    if (this.closed) this.#closed.abort(clientGone());
    return this.#closed.signal;
  }

  #onClose(): void {
    this.leave();
    this.#closed?.abort(clientGone());
    const { status, ...more } = outcomeOf(this.response);
    this.log(status, more);
  }
}

function idOf(link: PreviewAccess['link']): string {
  return link.kind === 'public' ? link.linkId : link.kind === 'team' ? link.userId : link.keyId;
}

function clientGone(): DOMException {
  return new DOMException('the client closed its connection', 'AbortError');
}

/**
 * Destroys the response and its connection. A pipelined response has no connection until its turn;
 * Node would drop it and leave the client waiting.
 */
function abort(response: ServerResponse): void {
  if (response.socket === null) {
    const assignSocket = response.assignSocket.bind(response);
    response.assignSocket = (socket) => {
      assignSocket(socket);
      socket.destroy();
    };
  }
  response.destroy();
}
