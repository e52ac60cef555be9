// Proxies one WebSocket: the handshake, then bytes in both directions. Frames are not parsed.
import http, { ServerResponse, type ClientRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { HALF_OPEN_MS } from '@berth/protocol/splice.ts';
import { trackActivity } from '../services/sandboxes/activity-signal.ts';
import { leasePreview, type PreviewAccess, type PreviewLease } from '../services/previews/access.ts';
import type { PreviewPlace } from '../rules/previews/host.ts';
import { cutAtEnd, type Admitted, type Abort } from './admission.ts';
import { pipeResponse } from './body.ts';
import { failureOf, NoResponse } from './failure.ts';
import { responseHeaders } from './headers.ts';
import { BAD_FRAMING, BROKEN_RESPONSE, TOO_SLOW, UNREACHABLE } from './refusals.ts';
import { PreviewRequest } from './request.ts';
import { sendHead } from './response-head.ts';
import type { PreviewRuntime } from './runtime.ts';

/** How long data in flight may take to reach one end after the other has closed. */
const LINGER_MS = 2_000;
const UPGRADE = { connection: 'Upgrade', upgrade: 'websocket' } as const;

export class WebSocketProxy {
  readonly request: PreviewRequest;
  readonly #runtime: PreviewRuntime;
  readonly #socket: Socket;
  /** Bytes that came with the handshake. */
  readonly #head: Buffer;
  #appRequest: ClientRequest | undefined;
  /** The connection to the app, once it has accepted. */
  #appSocket: Duplex | undefined;
  #responded = false;
  #failed = false;
  #timer: NodeJS.Timeout | undefined;
  #lease: PreviewLease | undefined;
  #activity: { end(): void } | undefined;

  constructor(runtime: PreviewRuntime, request: IncomingMessage, socket: Socket, head: Buffer, place: PreviewPlace) {
    this.#runtime = runtime;
    this.#socket = socket;
    this.#head = head;
    this.request = new PreviewRequest(runtime, request, responseOver(socket, request, runtime), place);
  }

  async start(): Promise<void> {
    const { context, bounds } = this.#runtime;
    const { request, response } = this.request;
    const admitted = await this.request.admit();
    if (admitted === undefined || this.request.closed) return;
    // Handshakes have no body: the app would read WebSocket frames as one.
    if (request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined) {
      this.request.refuse(BAD_FRAMING);
      return;
    }
    response.once('close', () => this.#close());
    this.#lease = leasePreview(this.#runtime.accessCache, admitted.access);
    void this.#lease.over.then((end) => this.#abort(cutAtEnd(end)));
    this.#activity = trackActivity(context, admitted.access.sandbox.id, 'preview');
    this.#timer = setTimeout(() => this.#abort({ code: TOO_SLOW.code, refusal: TOO_SLOW }), bounds.answerMs);
    this.#send(admitted);
  }

  /** Ends the WebSocket in any state. */
  cut(): void {
    this.#abort({ code: 'shutting_down', refusal: UNREACHABLE });
  }

  #send({ pool, access }: Admitted): void {
    const { place, headers, target } = this.request;
    const appRequest = http.request({
      path: target,
      port: place.port,
      headers: { ...headers, ...UPGRADE },
      setHost: false,
      agent: pool.dedicated,
      maxHeaderSize: this.#runtime.bounds.headBytes,
    });
    this.#appRequest = appRequest;
    appRequest.once('upgrade', (appResponse, appSocket, head) => this.#accept(appResponse, appSocket, head, access));
    appRequest.once('response', (appResponse) => this.#decline(appResponse, access));
    appRequest.on('error', (error) => this.#fail(error));
    appRequest.once('close', () => this.#fail(new NoResponse('the app closed the connection before responding')));
    appRequest.end();
  }

  /** Responds `101 Switching Protocols` and joins the two connections. */
  #accept(appResponse: IncomingMessage, appSocket: Duplex, head: Buffer, access: PreviewAccess): void {
    const request = this.request;
    const socket = this.#socket;
    this.#responded = true;
    clearTimeout(this.#timer);
    if (appResponse.headers.upgrade?.trim().toLowerCase() !== 'websocket' || request.closed) {
      request.errorCode ??= BROKEN_RESPONSE.code;
      appSocket.destroy();
      socket.destroy();
      return;
    }
    const { cookies, setCookie } = request.headChanges(access);
    const headers = responseHeaders(appResponse.headers, cookies, setCookie);
    request.response.detachSocket(socket);
    request.log(101, {});
    if (this.#head.length > 0) socket.unshift(this.#head);
    if (head.length > 0) appSocket.unshift(head);
    socket.write(switchingProtocols({ ...headers, ...UPGRADE }), 'latin1');
    this.#join(appSocket as Socket);
  }

  #join(appSocket: Socket): void {
    const socket = this.#socket;
    const openedAtMs = performance.now();
    this.#appSocket = appSocket;
    appSocket.allowHalfOpen = true;
    let open = 2;
    const onClose = (other: Socket): void => {
      open -= 1;
      if (open > 0) {
        other.end();
        setTimeout(() => other.destroy(), LINGER_MS).unref();
        return;
      }
      this.#close();
      const seconds = Math.round((performance.now() - openedAtMs) / 1_000);
      const { id, place, errorCode: code } = this.request;
      this.#runtime.context.log.info(
        { reqId: id, sandboxId: place.sandboxId, port: place.port, code, seconds },
        'preview WebSocket closed',
      );
    };
    // Previews support no half-close: no visitor waits for more after its end. An app may close
    // before a slow visitor has taken all.
    for (const [end, other, lingerMs] of [
      [socket, appSocket, LINGER_MS],
      [appSocket, socket, HALF_OPEN_MS],
    ] as const) {
      end.setNoDelay(true);
      end.setTimeout(this.#runtime.bounds.streamSilenceMs, () => this.#destroy('silent'));
      end.once('end', () => [end, other].forEach((each) => each.setTimeout(lingerMs)));
      end.once('close', () => onClose(other));
    }
    appSocket.pipe(socket).pipe(appSocket);
  }

  /** Proxies the response of an app that refuses the handshake. */
  #decline(appResponse: IncomingMessage, access: PreviewAccess): void {
    const { response } = this.request;
    const { bounds } = this.#runtime;
    this.#responded = true;
    appResponse.on('error', () => undefined);
    if (!sendHead(appResponse, response, this.request.headChanges(access))) {
      this.request.refuse(BROKEN_RESPONSE);
      appResponse.destroy();
      return;
    }
    clearTimeout(this.#timer);
    const timer = setTimeout(() => response.destroy(), bounds.silenceMs);
    appResponse.on('data', () => timer.refresh());
    appResponse.once('close', () => {
      clearTimeout(timer);
      if (!appResponse.complete) response.destroy();
    });
    pipeResponse(appResponse, response);
  }

  #fail(error: Error): void {
    if (this.#responded || this.#failed || this.request.closed) return;
    this.#failed = true;
    this.#runtime.context.log.debug({ err: error, reqId: this.request.id }, 'preview WebSocket failed');
    const failure = failureOf(error, this.request.place.port);
    this.request.refuse(failure === 'not_running' ? UNREACHABLE : failure);
  }

  #abort({ code, refusal }: Abort): void {
    if (this.#appSocket !== undefined) {
      this.#destroy(code);
      return;
    }
    if (this.request.closed) return;
    this.#failed = true;
    this.request.errorCode ??= code;
    this.request.refuse(refusal);
    this.#appRequest?.destroy();
  }

  #destroy(code: string): void {
    this.request.errorCode ??= code;
    this.#appSocket?.destroy();
    this.#socket.destroy();
  }

  #close(): void {
    clearTimeout(this.#timer);
    this.#lease?.close();
    this.#activity?.end();
    if (this.#appSocket === undefined) this.#appRequest?.destroy();
  }
}

/** A response over the connection of an upgrade, which Node leaves without one. */
export function responseOver(socket: Socket, request: IncomingMessage, { context }: PreviewRuntime): ServerResponse {
  socket.on('error', (error) => context.log.debug({ err: error }, 'connection of a preview client failed'));
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once('finish', () => socket.destroySoon());
  return response;
}

function switchingProtocols(headers: http.IncomingHttpHeaders): string {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((one) => `${name}: ${one}\r\n`),
  );
  return `HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`;
}
