// Requests that ask to become a WebSocket: they go through the server's routes like any other, so
// that a refusal is the JSON that any route answers, and leave HTTP when their route accepts. Owns
// the handshake and which WebSockets are open; what goes over them is websocket-join.ts's.
import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { WEBSOCKET } from '@berth/contract/route/limits.ts';
import { WEBSOCKET_CLOSE, WEBSOCKET_SUBPROTOCOL } from '@berth/contract/connections/websocket.ts';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { WebSocketServer, type WebSocket } from 'ws';
import { CodedError } from '../../rules/coded-error.ts';
import { CallerGone } from '../../call/failure.ts';
import { endBehindAnswer } from '../answers/last-answer.ts';
import { requireSubprotocol } from './websocket-bearer.ts';

const VERSION = '13';
const KEY = /^[0-9A-Za-z+/]{22}==$/;
/** How long one whose instance stops may take to say good-bye. */
const GOING_AWAY_MS = 1_000;

interface Upgrade {
  socket: Socket;
  /** What came right behind the request. */
  head: Buffer;
}

/**
 * For Node: which requests are handed over with their connection. Every other upgrade is ignored,
 * as a server may (RFC 9110).
 */
export function asksForWebSocket({ method, headers }: IncomingMessage): boolean {
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
    handleProtocols: (offered) => (offered.has(WEBSOCKET_SUBPROTOCOL) ? WEBSOCKET_SUBPROTOCOL : false),
  });
  #app: FastifyInstance | undefined;
  #closing = false;

  /** Serves upgrades by the routes of the app. */
  register(app: FastifyInstance): void {
    this.#app = app;
    app.addHook('preClose', (done) => {
      this.#closing = true;
      this.#open.forEach(goAway);
      done();
    });
  }

  takesUpgrade(request: IncomingMessage, socket: Socket, head: Buffer): boolean {
    const app = this.#app;
    if (app === undefined) return false;
    socket.on('error', (error) => app.log.debug({ err: error }, 'the connection of an upgrade broke'));
    this.#upgrades.set(request, { socket, head });
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    response.once('finish', () => endBehindAnswer(socket));
    app.routing(request, response);
    return true;
  }

  /** Throws unless the request can become a WebSocket. */
  require(request: FastifyRequest, reply: FastifyReply): void {
    const { headers } = request.raw;
    if (!this.#upgrades.has(request.raw)) {
      void reply.header('upgrade', 'websocket').header('connection', 'Upgrade');
      throw new CodedError(
        'upgrade_required',
        'this path is a WebSocket: ask for it with the header Upgrade: websocket',
      );
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
   * Answers 101 with the headers that the reply has so far. Throws {@link CallerGone} when the
   * caller is gone. After {@link require}.
   */
  accept(request: FastifyRequest, reply: FastifyReply): WebSocket {
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
      throw new Error('a handshake that was checked did not succeed');
    }
    const websocket: WebSocket = opened;
    this.#open.add(websocket);
    websocket.once('close', () => this.#open.delete(websocket));
    if (this.#closing) goAway(websocket);
    return websocket;
  }
}

function goAway(websocket: WebSocket): void {
  websocket.close(WEBSOCKET_CLOSE.goingAway, 'shutting_down');
  const timer = setTimeout(() => websocket.terminate(), GOING_AWAY_MS);
  websocket.once('close', () => clearTimeout(timer));
}
