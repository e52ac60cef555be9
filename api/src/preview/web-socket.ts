// A visitor's request to become a WebSocket: passed to the app with its connection, and, once the
// app agrees, all that comes on either side. What the WebSocket's frames mean is theirs alone.
import { ServerResponse, type ClientRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ProxyServer } from 'http-proxy-3';
import { endBehindAnswer } from '../http/answers/last-answer.ts';
import { holdActivity } from '../services/sandboxes/activity-signal.ts';
import { holdPreview, type PreviewLease } from '../services/previews/access.ts';
import type { PreviewPlace } from '../rules/previews/host.ts';
import { refusalAtEnd, type Admitted } from './admission.ts';
import { sendHead } from './answer.ts';
import { passAnswer } from './body.ts';
import type { Asking } from './connections.ts';
import { failureOf, NoAnswer } from './failure.ts';
import { headersForVisitor } from './headers.ts';
import type { PreviewParts } from './parts.ts';
import { BAD_FRAMING, BROKEN_ANSWER, TOO_SLOW, UNREACHABLE } from './refusals.ts';
import { Visit } from './visit.ts';

/** How long what was under way to one end may take to get there, when the other is closed. */
const LINGER_MS = 2_000;

export class WebSocketPassage implements Asking {
  readonly #parts: PreviewParts;
  readonly #proxy: ProxyServer;
  readonly visit: Visit;
  readonly #socket: Socket;
  readonly #head: Buffer;
  #admitted: Admitted | undefined;
  #outgoing: ClientRequest | undefined;
  /** The app's end, once it is one. */
  #stream: Duplex | undefined;
  #answered = false;
  #failed = false;
  #timer: NodeJS.Timeout | undefined;
  #lease: PreviewLease | undefined;
  #use: { end(): void } | undefined;

  constructor(
    parts: PreviewParts,
    proxy: ProxyServer,
    request: IncomingMessage,
    socket: Socket,
    head: Buffer,
    place: PreviewPlace,
  ) {
    this.#parts = parts;
    this.#proxy = proxy;
    this.#socket = socket;
    this.#head = head;
    socket.on('error', (error) => parts.context.log.debug({ err: error }, 'a visitor’s WebSocket broke'));
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    response.once('finish', () => endBehindAnswer(socket));
    this.visit = new Visit(parts, request, response, place);
  }

  async start(): Promise<void> {
    const visit = this.visit;
    const { request, response } = visit;
    const admitted = await visit.letIn();
    if (admitted === undefined || visit.gone) return;
    // Of a handshake there is no body; one that says so would leave the app waiting for it, and
    // take what comes next for it.
    if (request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined) {
      visit.refuse(BAD_FRAMING);
      return;
    }
    this.#admitted = admitted;
    response.once('close', () => this.#close());
    this.#hold(admitted);
    this.#timer = setTimeout(() => this.#cut({ name: TOO_SLOW.code, refusal: TOO_SLOW }), this.#parts.bounds.answerMs);
    this.#send(admitted);
  }

  asked(outgoing: ClientRequest): void {
    this.#outgoing = outgoing;
    outgoing.path = this.visit.target;
    // Before the library's own, which sends the head of the answer.
    outgoing.once('upgrade', (answer, stream) => this.#agreed(answer, stream));
    outgoing.on('error', (error) => this.#fail(error));
    outgoing.once('close', () => this.#fail(new NoAnswer('the connection was closed before there was an answer')));
  }

  /** Ends it, whatever it is doing. */
  cut(): void {
    this.#cut({ name: 'shutting_down', refusal: UNREACHABLE });
  }

  #send({ connections }: Admitted): void {
    const { request, place, headers, target } = this.visit;
    request.url = target;
    request.headers = { ...headers, connection: 'Upgrade', upgrade: 'websocket' };
    const options = {
      target: { protocol: 'http:', host: 'sandbox', port: place.port },
      toProxy: true,
      agent: connections.single,
      ssl: { asking: this, maxHeaderSize: this.#parts.bounds.headBytes },
    };
    this.#proxy.ws(request, this.#socket, this.#head, options, () => undefined);
    // An app that does not agree is passed on as any answer is: the library would hold all of it
    // that its visitor has not taken.
    this.#outgoing?.removeAllListeners('response');
    this.#outgoing?.once('response', (answer) => this.#declined(answer));
  }

  #agreed(answer: IncomingMessage, stream: Duplex): void {
    const { response } = this.visit;
    this.#answered = true;
    clearTimeout(this.#timer);
    if (answer.headers.upgrade?.trim().toLowerCase() !== 'websocket' || this.visit.gone) {
      this.visit.code ??= BROKEN_ANSWER.code;
      stream.destroy();
      this.#socket.destroy();
      return;
    }
    const { cookieName } = this.#parts;
    const headers = headersForVisitor(answer.headers, cookieName, this.#admitted?.access.setCookie ?? null);
    answer.headers = { ...headers, connection: 'Upgrade', upgrade: 'websocket' };
    response.detachSocket(this.#socket);
    this.visit.log(101, {});
    this.#join(stream);
  }

  /** The library pipes each into the other. */
  #join(stream: Duplex): void {
    const socket = this.#socket;
    const openedAtMs = performance.now();
    this.#stream = stream;
    stream.allowHalfOpen = true;
    // After the library has set its own.
    setImmediate(() => {
      for (const end of [socket, stream as Socket])
        end.setTimeout(this.#parts.bounds.streamSilenceMs, () => this.#endBoth('silent'));
    });
    let open = 2;
    const closed = (other: Duplex) => (): void => {
      open -= 1;
      if (open > 0) {
        setTimeout(() => other.destroy(), LINGER_MS).unref();
      } else {
        this.#close();
        const seconds = Math.round((performance.now() - openedAtMs) / 1_000);
        const { id, place, code } = this.visit;
        this.#parts.context.log.info(
          { reqId: id, sandboxId: place.sandboxId, port: place.port, code, seconds },
          'a WebSocket of a preview was closed',
        );
      }
    };
    socket.once('close', closed(stream));
    stream.once('close', closed(socket));
  }

  #declined(answer: IncomingMessage): void {
    const { response } = this.visit;
    const { cookieName, bounds } = this.#parts;
    this.#answered = true;
    answer.on('error', () => undefined);
    if (!sendHead(answer, response, { cookieName, setCookie: this.#admitted?.access.setCookie ?? null })) {
      this.visit.refuse(BROKEN_ANSWER);
      answer.destroy();
      return;
    }
    clearTimeout(this.#timer);
    const silence = setTimeout(() => response.destroy(), bounds.silenceMs);
    answer.on('data', () => silence.refresh());
    answer.once('close', () => {
      clearTimeout(silence);
      if (!answer.complete) response.destroy();
    });
    passAnswer(answer, response);
  }

  #fail(error: Error): void {
    if (this.#answered || this.#failed || this.visit.gone) return;
    this.#failed = true;
    this.#parts.context.log.debug({ err: error, reqId: this.visit.id }, 'a WebSocket did not get to its app');
    const failure = failureOf(error, this.visit.place.port);
    this.visit.refuse(failure === 'not_there' ? UNREACHABLE : failure);
  }

  #hold({ access }: Admitted): void {
    const { context } = this.#parts;
    this.#lease = holdPreview(context, access);
    void this.#lease.over.then((end) => this.#cut(refusalAtEnd(end)));
    this.#use = holdActivity(context, access.sandbox.id, 'preview');
  }

  #cut({ name, refusal }: ReturnType<typeof refusalAtEnd>): void {
    if (this.#stream !== undefined) {
      this.#endBoth(name);
      return;
    }
    if (this.visit.gone) return;
    this.#failed = true;
    this.visit.code ??= name;
    this.visit.refuse(refusal);
    this.#outgoing?.destroy();
  }

  #endBoth(why: string): void {
    this.visit.code ??= why;
    this.#stream?.destroy();
    this.#socket.destroy();
  }

  #close(): void {
    clearTimeout(this.#timer);
    this.#lease?.close();
    this.#use?.end();
    if (this.#stream === undefined) this.#outgoing?.destroy();
  }
}
