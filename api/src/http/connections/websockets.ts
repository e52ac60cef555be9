// WebSocket upgrade requests. Requests pass through the server's routes, so a refusal is ordinary
// JSON, and leave HTTP when their route accepts. Owns the handshake and the set of open WebSockets;
// websocket-join.ts carries the frames.
import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { WEBSOCKET } from '@berth/contract/route/limits.ts';
import {
  API_ERROR_CLOSE,
  OUTCOME_SUBPROTOCOL,
  WEBSOCKET_CLOSE,
  WEBSOCKET_SUBPROTOCOL,
  type WebSocketOutcome,
} from '@berth/contract/connections/websocket.ts';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { WebSocketServer, type WebSocket } from 'ws';
import { CodedError } from '../../rules/coded-error.ts';
import { CallerGone } from '../../call/failure.ts';
import type { RouteResponse } from '../../call/call-route.ts';
import { offers, requireSubprotocol } from './websocket-bearer.ts';

const VERSION = '13';
const KEY = /^[0-9A-Za-z+/]{22}==$/;
/** Time for the close handshakes of refusals, and of all when the instance stops. */
const CLOSING_MS = 1_000;

interface Upgrade {
  socket: Socket;
  /** Bytes that followed the request's head. */
  head: Buffer;
}

/**
 * Tells Node which upgrades to hand over with their connection. Others are ignored, as RFC 9110
 * allows.
 */
export function isWebSocketRequest({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.trim().toLowerCase() === 'websocket';
}

export class WebSockets {
  readonly #upgrades = new WeakMap<IncomingMessage, Upgrade>();
  readonly #open = new Set<WebSocket>();
  readonly #server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: WEBSOCKET.frameBytes,
    handleProtocols: (offered) =>
      [OUTCOME_SUBPROTOCOL, WEBSOCKET_SUBPROTOCOL].find((name) => offered.has(name)) ?? false,
  });
  #app: FastifyInstance | undefined;
  #closing = false;

  /** Serves upgrades through the routes of the app. */
  register(app: FastifyInstance): void {
    this.#app = app;
    app.addHook('preClose', (done) => {
      this.#closing = true;
      this.#open.forEach(closeGoingAway);
      done();
    });
  }

  handlesUpgrade(request: IncomingMessage, socket: Socket, head: Buffer): boolean {
    const app = this.#app;
    if (app === undefined) return false;
    socket.on('error', (error) => app.log.debug({ err: error }, 'connection lost during an upgrade'));
    this.#upgrades.set(request, { socket, head });
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    response.once('finish', () => socket.destroySoon());
    app.routing(request, response);
    return true;
  }

  /** Throws unless the request can become a WebSocket. */
  require(request: FastifyRequest, reply: FastifyReply): void {
    const { headers } = request.raw;
    if (!this.#upgrades.has(request.raw)) {
      void reply.header('upgrade', 'websocket').header('connection', 'Upgrade');
      throw new CodedError('upgrade_required', 'this path is a WebSocket: send the header Upgrade: websocket');
    }
    if (headers['sec-websocket-version'] !== VERSION) {
      void reply.header('sec-websocket-version', VERSION);
      throw new CodedError('upgrade_required', `the header Sec-WebSocket-Version must be ${VERSION}`);
    }
    if (!KEY.test(headers['sec-websocket-key'] ?? ''))
      throw new CodedError('invalid_request', 'the header Sec-WebSocket-Key must be 16 bytes in base64');

    requireSubprotocol(request.raw);
  }

  /**
   * Responds 101 with the reply's headers. Throws {@link CallerGone} when the caller disconnected.
   * Call after {@link require}.
   */
  accept(request: FastifyRequest, reply: FastifyReply): WebSocket {
    const websocket = this.#shake(request, reply);
    sendOutcome(websocket, { opened: true });
    return websocket;
  }

  /**
   * Reports a refusal over a WebSocket to a client that offered {@link OUTCOME_SUBPROTOCOL} in a
   * valid handshake. Returns false for others, which get a response.
   */
  refuse(request: FastifyRequest, reply: FastifyReply, { status, headers, body }: RouteResponse): boolean {
    if (!offers(request.raw, OUTCOME_SUBPROTOCOL) || !this.#isValid(request, reply)) return false;
    const websocket = this.#shake(request, reply);
    websocket.on('error', (error) => request.log.debug({ err: error }, 'WebSocket failed'));
    const retryAfter = headers['retry-after'];
    const refused = { status, requestId: request.id, body, ...(retryAfter === undefined ? {} : { retryAfter }) };
    sendOutcome(websocket, { refused });
    closeSoon(websocket, API_ERROR_CLOSE + status, '');
    return true;
  }

  #isValid(request: FastifyRequest, reply: FastifyReply): boolean {
    try {
      this.require(request, reply);
      return true;
    } catch (error) {
      if (!(error instanceof CodedError)) throw error;
      return false;
    }
  }

  #shake(request: FastifyRequest, reply: FastifyReply): WebSocket {
    const upgrade = this.#upgrades.get(request.raw);
    if (upgrade === undefined || !upgrade.socket.readable || !upgrade.socket.writable)
      throw new CallerGone('the caller closed its connection');
    const { socket, head } = upgrade;
    const lines = Object.entries(reply.getHeaders()).map(([name, value]) => `${name}: ${String(value)}`);
    reply.hijack();
    reply.raw.detachSocket(socket);
    let opened: WebSocket | undefined;
    this.#server.once('headers', (headers: string[]) => headers.push(...lines));
    this.#server.handleUpgrade(request.raw, socket, head, (websocket) => (opened = websocket));
    if (opened === undefined) {
      socket.destroy();
      throw new Error('WebSocket handshake failed after validation');
    }
    const websocket: WebSocket = opened;
    this.#open.add(websocket);
    websocket.once('close', () => this.#open.delete(websocket));
    if (this.#closing) closeGoingAway(websocket);
    return websocket;
  }
}

function closeGoingAway(websocket: WebSocket): void {
  closeSoon(websocket, WEBSOCKET_CLOSE.goingAway, 'shutting_down');
}

/** Closes; the other side has a second to answer. */
function closeSoon(websocket: WebSocket, code: number, reason: string): void {
  websocket.close(code, reason);
  const timer = setTimeout(() => websocket.terminate(), CLOSING_MS);
  websocket.once('close', () => clearTimeout(timer));
}

/** Tells a client that asked for it how its request ended. */
function sendOutcome(websocket: WebSocket, outcome: WebSocketOutcome): void {
  if (websocket.protocol === OUTCOME_SUBPROTOCOL) websocket.send(JSON.stringify(outcome), { binary: false });
}
