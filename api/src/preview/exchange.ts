// One request that passes to an app and its answer back, each as fast as the other side takes it.
// Owns how long they may be silent, what holds the sandbox in use meanwhile, and what a visitor is
// told when there is no answer.
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { ProxyServer } from 'http-proxy-3';
import { holdActivity } from '../services/sandboxes/activity-signal.ts';
import { holdPreview, type PreviewLease } from '../services/previews/access.ts';
import { refusalAtEnd, type Admitted } from './admission.ts';
import { sendHead } from './answer.ts';
import { NO_BODY, passAnswer, VisitorsBody } from './body.ts';
import type { Asking } from './connections.ts';
import { failureOf, NoAnswer } from './failure.ts';
import type { PreviewParts } from './parts.ts';
import { BROKEN_ANSWER, TOO_SLOW, UNREACHABLE, UPLOAD_STALLED } from './refusals.ts';
import type { Visit } from './visit.ts';

/**
 * What may be sent once more when nobody knows whether it arrived (RFC 9110). Not HEAD: of its
 * answer nobody can see whether the app thinks it has come to its end, so that its connection is no
 * other's.
 */
const REPEATABLE: ReadonlySet<string> = new Set(['GET', 'OPTIONS', 'TRACE']);
/**
 * How long a visitor who was answered while still sending may take to come to the end, for the
 * connection to be kept.
 */
const LINGER_MS = 2_000;

export class Exchange implements Asking {
  readonly #parts: PreviewParts;
  readonly #proxy: ProxyServer;
  readonly #visit: Visit;
  readonly #repeatable: boolean;
  #admitted: Admitted;
  /** The visitor waits to be told to go on. */
  #expects = false;
  #outgoing: ClientRequest | undefined;
  #answer: IncomingMessage | undefined;
  #failed = false;
  /** It was sent once more. */
  #repeated = false;
  #timer: NodeJS.Timeout | undefined;
  #lease: PreviewLease | undefined;
  #use: { end(): void } | undefined;

  constructor(parts: PreviewParts, proxy: ProxyServer, visit: Visit, admitted: Admitted) {
    this.#parts = parts;
    this.#proxy = proxy;
    this.#visit = visit;
    this.#admitted = admitted;
    this.#repeatable = !visit.hasBody && REPEATABLE.has(visit.request.method ?? '');
  }

  /** An answer without a length goes on for as long as its app likes. */
  get streams(): boolean {
    return this.#answer !== undefined && this.#answer.headers['content-length'] === undefined;
  }

  start(): void {
    const { context, bounds } = this.#parts;
    const { request, response, hasBody, headers, target } = this.#visit;
    const { access } = this.#admitted;
    // The client writes the head of a request that expects to be told to go on as it is made,
    // before anybody can change it: it is told of that afterwards.
    this.#expects = headers.expect !== undefined;
    delete headers.expect;
    request.headers = headers;
    request.url = target;
    this.#lease = holdPreview(context, access);
    void this.#lease.over.then((end) => this.#cut(refusalAtEnd(end)));
    this.#use = holdActivity(context, access.sandbox.id, 'preview');
    response.once('close', () => this.#close());
    if (hasBody) {
      this.#bound(bounds.uploadSilenceMs, () => this.#stalled());
      request.on('data', () => this.#timer?.refresh());
      request.once('end', () => this.#awaitAnswer());
    } else {
      this.#awaitAnswer();
    }
    this.#send();
  }

  /** The client's request, once it is made and before anything of it is sent. */
  asked(outgoing: ClientRequest): void {
    this.#outgoing = outgoing;
    // As it was written: the library parses it and puts it together again.
    outgoing.path = this.#visit.target;
    if (this.#expects) outgoing.setHeader('expect', '100-continue');
    outgoing.on('continue', () => {
      const { response } = this.#visit;
      // Behind an answer that is under way Node would put it into the middle of this one, after its
      // head.
      const isItsTurn = response.socket !== null && !response.headersSent && !response.destroyed;
      if (isItsTurn) response.writeContinue();
    });
    outgoing.once('response', (answer) => this.#answered(answer));
    const failed = (error: Error): void => {
      // What is said of a request that was sent once more means that one no longer.
      if (this.#outgoing === outgoing) this.#fail(error);
    };
    outgoing.on('error', failed);
    // An answer that switches to another protocol unasked ends so, and with nothing else.
    outgoing.once('close', () => {
      if (this.#answer === undefined) failed(new NoAnswer('the connection was closed before there was an answer'));
    });
  }

  #answered(answer: IncomingMessage): void {
    const { response, request } = this.#visit;
    const { bounds, cookieName } = this.#parts;
    this.#answer = answer;
    answer.on('error', () => undefined);
    const { setCookie } = this.#admitted.access;
    if (response.headersSent || !sendHead(answer, response, { cookieName, setCookie })) {
      this.#failed = true;
      this.#visit.refuse(BROKEN_ANSWER);
      answer.destroy();
      return;
    }
    const cut = (): void => this.#cut({ name: 'silent', refusal: TOO_SLOW });
    this.#bound(this.streams ? bounds.streamSilenceMs : bounds.silenceMs, cut);
    answer.on('data', () => this.#timer?.refresh());
    answer.once('close', () => {
      if (!answer.complete) this.#cut({ name: BROKEN_ANSWER.code, refusal: BROKEN_ANSWER });
    });
    response.once('finish', () => {
      if (!request.complete) this.#listenOn();
    });
    passAnswer(answer, response);
    // Whoever waits for events is to know that they come, before the first of them. Not by
    // flushHeaders(), which makes UTF-8 of headers that are bytes.
    setImmediate(() => {
      if (!answer.readableDidRead && !response.writableEnded && !response.destroyed) response.write('', 'latin1');
    });
  }

  /** Ends it, whatever it is doing. */
  cut(): void {
    this.#cut({ name: 'shutting_down', refusal: UNREACHABLE });
  }

  /** Called with what went wrong, perhaps more than once. */
  #fail(error: Error): void {
    const { context } = this.#parts;
    const visit = this.#visit;
    // An answer that has begun ends by itself, or is found broken.
    if (this.#answer !== undefined || this.#failed || visit.gone) return;
    const unused = this.#outgoing?.reusedSocket === true && (isClosed(error) || error instanceof NoAnswer);
    this.#failed = true;
    if (this.#repeatable && unused && !this.#repeated) {
      this.#again();
      return;
    }
    context.log.debug({ err: error, reqId: visit.id }, 'a request did not get to its app, or no answer back');
    const failure = failureOf(error, visit.place.port);
    if (failure !== 'not_there') {
      visit.refuse(failure);
    } else {
      this.#lookAgain().catch((cause: unknown) => {
        context.log.warn({ err: cause, reqId: visit.id }, 'a sandbox could not be looked at');
        visit.refuse(UNREACHABLE);
      });
    }
  }

  #send(): void {
    const { request, response, place, hasBody } = this.#visit;
    const { connections } = this.#admitted;
    const method = request.method ?? 'GET';
    const options = {
      target: { protocol: 'http:', host: 'sandbox', port: place.port },
      // The path is not taken apart: it is the app's.
      toProxy: true,
      // Its answer is passed on here.
      selfHandleResponse: true,
      buffer: hasBody ? new VisitorsBody(request) : NO_BODY,
      method,
      agent: this.#repeatable && !this.#repeated ? connections.pooled : connections.single,
      // What the library makes the client's options of: the agent finds this exchange in them.
      ssl: { asking: this, maxHeaderSize: this.#parts.bounds.headBytes },
    };
    // The library takes a body that is sent in chunks for none where the method is one of these;
    // then it would run into the next request.
    if (hasBody) request.method = 'POST';
    try {
      // It reports what the client's request does too.
      this.#proxy.web(request, response, options, () => undefined);
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)));
    } finally {
      request.method = method;
    }
    if (!hasBody) return;
    const { socket } = this.#visit.request;
    const outgoing = this.#outgoing;
    // An app may answer before there is anything of the body.
    setImmediate(() => {
      if (outgoing !== undefined && !outgoing.headersSent && !outgoing.destroyed && !socket.destroyed)
        outgoing.write('', 'latin1');
    });
  }

  #again(): void {
    this.#repeated = true;
    this.#failed = false;
    this.#send();
  }

  /**
   * The machine does not run where it was thought to. Nothing has been sent; a body, though, may
   * have been begun to be read.
   */
  async #lookAgain(): Promise<void> {
    const visit = this.#visit;
    const admitted = await visit.letInAgain();
    if (admitted === undefined || visit.gone) return;
    if (visit.hasBody || this.#repeated) {
      visit.refuse(UNREACHABLE);
      return;
    }
    this.#admitted = { ...admitted, access: { ...admitted.access, setCookie: this.#admitted.access.setCookie } };
    this.#again();
  }

  #awaitAnswer(): void {
    if (this.#answer === undefined && !this.#failed)
      this.#bound(this.#parts.bounds.answerMs, () => this.#cut({ name: TOO_SLOW.code, refusal: TOO_SLOW }));
  }

  #stalled(): void {
    // The app may be the one that takes no more.
    const refusal = this.#outgoing?.writableNeedDrain === true ? TOO_SLOW : UPLOAD_STALLED;
    this.#cut({ name: refusal.code, refusal });
  }

  #bound(ms: number, over: () => void): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(over, ms);
  }

  #cut({ name, refusal }: ReturnType<typeof refusalAtEnd>): void {
    if (this.#visit.gone || this.#visit.response.writableFinished) return;
    this.#failed = true;
    this.#visit.code ??= name;
    this.#visit.refuse(refusal);
    this.#outgoing?.destroy();
  }

  /** The app has said all, and its visitor has not. */
  #listenOn(): void {
    const { request } = this.#visit;
    this.#outgoing?.destroy();
    request.resume();
    const timer = setTimeout(() => request.socket.destroySoon(), LINGER_MS);
    request.once('close', () => clearTimeout(timer));
  }

  #close(): void {
    clearTimeout(this.#timer);
    this.#lease?.close();
    this.#use?.end();
    if (this.#answer?.complete !== true) this.#outgoing?.destroy();
  }
}

/** The other end closed a connection that it had kept open. */
function isClosed(error: Error & { code?: string }): boolean {
  return error.code === 'ECONNRESET' || error.code === 'EPIPE';
}
