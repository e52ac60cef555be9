// Proxies one request and its response, with back-pressure in both directions. Enforces idle
// timeouts, keeps the sandbox in use meanwhile, and refuses a request that gets no response.
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import { trackActivity } from '../services/sandboxes/activity-signal.ts';
import { leasePreview, type PreviewLease } from '../services/previews/access.ts';
import { cutAtEnd, type Admitted, type Abort } from './admission.ts';
import { pipeBody, pipeResponse } from './body.ts';
import { failureOf, NoResponse } from './failure.ts';
import { BROKEN_RESPONSE, TOO_SLOW, UNREACHABLE, UPLOAD_STALLED } from './refusals.ts';
import type { PreviewRequest } from './request.ts';
import { sendHead } from './response-head.ts';
import type { PreviewRuntime } from './runtime.ts';

/**
 * Methods retried when the app may or may not have received the request (RFC 9110). Not HEAD: an
 * app may send a body after all, which the next request on the connection would read.
 */
const REPEATABLE: ReadonlySet<string> = new Set(['GET', 'OPTIONS', 'TRACE']);
/**
 * How long to drain a request body after the response was sent, before closing the keep-alive
 * connection.
 */
const DRAIN_MS = 2_000;

export class Exchange {
  readonly #runtime: PreviewRuntime;
  readonly #request: PreviewRequest;
  readonly #repeatable: boolean;
  #admitted: Admitted;
  #appRequest: ClientRequest | undefined;
  #appResponse: IncomingMessage | undefined;
  #failed = false;
  #retried = false;
  #timer: NodeJS.Timeout | undefined;
  #lease: PreviewLease | undefined;
  #activity: { end(): void } | undefined;

  constructor(runtime: PreviewRuntime, request: PreviewRequest, admitted: Admitted) {
    this.#runtime = runtime;
    this.#request = request;
    this.#admitted = admitted;
    this.#repeatable = !request.hasBody && REPEATABLE.has(request.request.method ?? '');
  }

  /** The response has begun without a length: it may last arbitrarily long. */
  get isStream(): boolean {
    return this.#appResponse !== undefined && this.#appResponse.headers['content-length'] === undefined;
  }

  start(): void {
    const { context, bounds } = this.#runtime;
    const { request, response, hasBody } = this.#request;
    const { access } = this.#admitted;
    this.#lease = leasePreview(this.#runtime.accessCache, access);
    void this.#lease.over.then((end) => this.#abort(cutAtEnd(end)));
    this.#activity = trackActivity(context, access.sandbox.id, 'preview');
    response.once('close', () => this.#close());
    if (hasBody) {
      this.#timeout(bounds.uploadSilenceMs, () => this.#onUploadStalled());
      request.on('data', () => this.#timer?.refresh());
      request.once('end', () => this.#awaitResponse());
    } else {
      this.#awaitResponse();
    }
    this.#send();
  }

  /** Ends the exchange in any state. */
  cut(): void {
    this.#abort({ code: 'shutting_down', refusal: UNREACHABLE });
  }

  #send(): void {
    const { request, place, headers, target, hasBody } = this.#request;
    const { shared, dedicated } = this.#admitted.pool;
    let appRequest: ClientRequest;
    try {
      appRequest = http.request({
        method: request.method,
        path: target,
        port: place.port,
        headers,
        setHost: false,
        agent: this.#repeatable && !this.#retried ? shared : dedicated,
        maxHeaderSize: this.#runtime.bounds.headBytes,
      });
    } catch (error) {
      // Node validates the request head.
      this.#fail(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    this.#appRequest = appRequest;
    appRequest.on('continue', () => this.#sendContinue());
    appRequest.once('response', (appResponse) => this.#respond(appResponse));
    const onError = (error: Error): void => {
      // Ignore errors of an attempt that has been retried.
      if (this.#appRequest === appRequest) this.#fail(error);
    };
    appRequest.on('error', onError);
    // The only event after a response that switches protocols unasked.
    appRequest.once('close', () => {
      if (this.#appResponse === undefined) onError(new NoResponse('the app closed the connection before responding'));
    });
    if (!hasBody) {
      appRequest.end();
      return;
    }
    pipeBody(request, appRequest);
    // Send the head before the first byte of the body: the app may respond to it. Not by
    // flushHeaders(), which encodes header bytes as UTF-8.
    setImmediate(() => {
      if (!appRequest.headersSent && !appRequest.destroyed && !request.socket.destroyed) appRequest.write('', 'latin1');
    });
  }

  /** Passes `100 Continue` on, unless an earlier pipelined response is still being sent. */
  #sendContinue(): void {
    const { response } = this.#request;
    if (response.socket !== null && !response.headersSent && !response.destroyed) response.writeContinue();
  }

  #respond(appResponse: IncomingMessage): void {
    const { response, request } = this.#request;
    const { bounds } = this.#runtime;
    this.#appResponse = appResponse;
    appResponse.on('error', () => undefined);
    if (response.headersSent || !sendHead(appResponse, response, this.#request.headChanges(this.#admitted.access))) {
      this.#failed = true;
      this.#request.refuse(BROKEN_RESPONSE);
      appResponse.destroy();
      return;
    }
    this.#timeout(this.isStream ? bounds.streamSilenceMs : bounds.silenceMs, () =>
      this.#abort({ code: 'silent', refusal: TOO_SLOW }),
    );
    appResponse.on('data', () => this.#timer?.refresh());
    appResponse.once('close', () => {
      if (!appResponse.complete) this.#abort({ code: BROKEN_RESPONSE.code, refusal: BROKEN_RESPONSE });
    });
    response.once('finish', () => {
      if (!request.complete) this.#drainRequest();
    });
    pipeResponse(appResponse, response);
    // Send the head before the first event of a stream, in latin1 as above.
    setImmediate(() => {
      if (!appResponse.readableDidRead && !response.writableEnded && !response.destroyed) response.write('', 'latin1');
    });
  }

  /** May be called more than once for an attempt. */
  #fail(error: Error): void {
    const request = this.#request;
    // A response that has begun ends by itself, or is cut.
    if (this.#appResponse !== undefined || this.#failed || request.closed) return;
    const wasStale = this.#appRequest?.reusedSocket === true && isConnectionClosed(error);
    this.#failed = true;
    if (this.#repeatable && wasStale && !this.#retried) {
      this.#retry();
      return;
    }
    const { log } = this.#runtime.context;
    log.debug({ err: error, reqId: request.id }, 'preview request failed');
    const failure = failureOf(error, request.place.port);
    if (failure !== 'not_running') {
      request.refuse(failure);
      return;
    }
    this.#readmit().catch((cause: unknown) => {
      log.warn({ err: cause, reqId: request.id }, 'could not readmit a preview request');
      request.refuse(UNREACHABLE);
    });
  }

  #retry(): void {
    this.#retried = true;
    this.#failed = false;
    this.#send();
  }

  /** Retries on the sandbox's current VM. Nothing was sent; part of a body may have been read. */
  async #readmit(): Promise<void> {
    const request = this.#request;
    const admitted = await request.readmit();
    if (admitted === undefined || request.closed) return;
    if (request.hasBody || this.#retried) {
      request.refuse(UNREACHABLE);
      return;
    }
    const { setCookie } = this.#admitted.access;
    this.#admitted = { ...admitted, access: { ...admitted.access, setCookie } };
    this.#retry();
  }

  #awaitResponse(): void {
    if (this.#appResponse === undefined && !this.#failed)
      this.#timeout(this.#runtime.bounds.answerMs, () => this.#abort({ code: TOO_SLOW.code, refusal: TOO_SLOW }));
  }

  #onUploadStalled(): void {
    // The stall is the app's when it does not read.
    const refusal = this.#appRequest?.writableNeedDrain === true ? TOO_SLOW : UPLOAD_STALLED;
    this.#abort({ code: refusal.code, refusal });
  }

  #timeout(ms: number, onTimeout: () => void): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(onTimeout, ms);
  }

  #abort({ code, refusal }: Abort): void {
    const request = this.#request;
    if (request.closed || request.response.writableFinished) return;
    this.#failed = true;
    request.errorCode ??= code;
    request.refuse(refusal);
    this.#appRequest?.destroy();
  }

  /** The response is complete and the request is not. */
  #drainRequest(): void {
    const { request } = this.#request;
    this.#appRequest?.destroy();
    request.resume();
    const timer = setTimeout(() => request.socket.destroySoon(), DRAIN_MS);
    request.once('close', () => clearTimeout(timer));
  }

  #close(): void {
    clearTimeout(this.#timer);
    this.#lease?.close();
    this.#activity?.end();
    if (this.#appResponse?.complete !== true) this.#appRequest?.destroy();
  }
}

/** The app closed the connection: of a reused one, possibly before the request arrived. */
function isConnectionClosed(error: Error & { code?: string }): boolean {
  return error.code === 'ECONNRESET' || error.code === 'EPIPE' || error instanceof NoResponse;
}
