// One request of a visitor, from its first look to its line in the log: what it brings, how it is
// let in, and how it is refused. What passes to the app and back is exchange.ts's and
// web-socket.ts's.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { newRequestId } from '../http/answers/request-id.ts';
import { outcomeOf } from '../http/requests/request-log.ts';
import { takeToken } from '../rules/previews/credentials.ts';
import type { PreviewPlace } from '../rules/previews/host.ts';
import type { PreviewAccess } from '../services/previews/access.ts';
import { admit, admitAgain, type Admission, type Admitted } from './admission.ts';
import { headersForApp } from './headers.ts';
import { sendElsewhere, sendRefusal } from './page.ts';
import type { PreviewParts } from './parts.ts';
import { BAD_FRAMING, NOT_SUPPORTED, SIGN_IN_FIRST, type Refusal } from './refusals.ts';

export class Visit {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly place: PreviewPlace;
  readonly id = newRequestId();
  /** For the app. */
  headers: IncomingHttpHeaders = {};
  /** Path and query for the app, without our tokens. */
  target = '/';
  hasBody = false;
  access: PreviewAccess | undefined;
  /** For the log: what went wrong on the way to the app. */
  code: string | undefined;
  readonly #parts: PreviewParts;
  readonly #startedAtMs = performance.now();
  #gone: AbortController | undefined;

  constructor(parts: PreviewParts, request: IncomingMessage, response: ServerResponse, place: PreviewPlace) {
    this.#parts = parts;
    this.request = request;
    this.response = response;
    this.place = place;
    // Whatever breaks ends with 'close' too.
    request.on('error', (error) =>
      parts.context.log.debug({ err: error, reqId: this.id }, 'a visitor’s connection broke'),
    );
    response.on('error', (error) =>
      parts.context.log.debug({ err: error, reqId: this.id }, 'a visitor’s connection broke'),
    );
    response.once('close', () => this.#onClose());
  }

  get gone(): boolean {
    return this.response.destroyed || this.response.closed;
  }

  /** Where the visitor may go on; undefined when the request was answered. */
  async letIn(): Promise<Admitted | undefined> {
    const { request, place } = this;
    const { cookieName, address, reachedBy } = this.#parts;
    const given = request.headers;
    const method = request.method ?? 'GET';
    const taken = takeToken(request.url ?? '/');
    const { headers, cookie, hasBody } = headersForApp(given, method, cookieName);
    this.headers = headers;
    this.target = taken.target;
    this.hasBody = hasBody;
    headers['x-forwarded-for'] = address.of(request);
    headers['x-forwarded-proto'] = reachedBy.proto;
    headers['x-forwarded-host'] = given.host ?? '';
    headers['x-forwarded-port'] = /:(\d+)$/.exec(given.host ?? '')?.[1] ?? reachedBy.port;
    const visit = { ...place, token: taken.token, cookie };
    const admitted = this.#entered(await admit(this.#parts, visit, taken.target, () => this.#untilGone()));
    if (admitted === undefined) return undefined;
    const encoding = given['transfer-encoding'];
    // Node's parser refuses these two together; so much hangs on it that it is not relied on.
    if (encoding !== undefined && given['content-length'] !== undefined) return this.refuse(BAD_FRAMING);
    if (encoding !== undefined && encoding.toLowerCase() !== 'chunked') return this.refuse(NOT_SUPPORTED);
    return admitted;
  }

  /** After the machine was not as its row said: once more, by what it is now. */
  async letInAgain(): Promise<Admitted | undefined> {
    const { access } = this;
    if (access === undefined) throw new Error('nobody was let in');
    return this.#entered(await admitAgain(this.#parts, access, () => this.#untilGone()));
  }

  /** Answers with the refusal, or, where an answer has begun, breaks it off. */
  refuse(refusal: Refusal): undefined {
    this.code ??= refusal.code;
    const { request, response } = this;
    if (this.gone) return;
    if (response.headersSent) breakOff(response);
    else sendRefusal(request, response, refusal, this.id);
  }

  #entered(admission: Admission): Admitted | undefined {
    if (this.gone) return undefined;
    if ('admitted' in admission) {
      this.access = admission.admitted.access;
      return admission.admitted;
    }
    if ('refusal' in admission) return this.refuse(admission.refusal);
    const { request, response } = this;
    const byBrowser =
      (request.method === 'GET' || request.method === 'HEAD') && request.headers.accept?.includes('text/html') === true;
    if (!byBrowser || request.headers.upgrade !== undefined) return this.refuse(SIGN_IN_FIRST);
    sendElsewhere(response, admission.signInAt, this.id);
    return undefined;
  }

  #untilGone(): AbortSignal {
    this.#gone ??= new AbortController();
    if (this.gone) this.#gone.abort(new DOMException('the visitor went away', 'AbortError'));
    return this.#gone.signal;
  }

  #onClose(): void {
    this.#gone?.abort(new DOMException('the visitor went away', 'AbortError'));
    const { status, ...more } = outcomeOf(this.response);
    this.log(status, more);
  }

  /**
   * The line that every visit leaves; what was asked for and with which link's token is not in it.
   */
  log(status: number, more: Readonly<Record<string, unknown>>): void {
    const { request, place, access, code } = this;
    this.#parts.context.log.info(
      {
        reqId: this.id,
        method: request.method,
        status,
        code,
        sandboxId: place.sandboxId,
        port: place.port,
        link: access?.link.kind,
        linkId: access?.link.kind === 'public' ? access.link.linkId : access?.link.userId,
        ...more,
        ms: Math.round((performance.now() - this.#startedAtMs) * 10) / 10,
      },
      'a request to a preview',
    );
  }
}

/**
 * Behind other answers it is broken off in its turn, which comes with the connection: of one that
 * has none yet Node only forgets it.
 */
function breakOff(response: ServerResponse): void {
  if (response.socket === null) {
    const assignSocket = response.assignSocket.bind(response);
    response.assignSocket = (socket) => {
      assignSocket(socket);
      socket.destroy();
    };
  }
  response.destroy();
}
