// The contract's WebSockets: a call opens the connection into the sandbox, so that a refusal is a
// JSON error; then the request leaves HTTP.
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { WebSocket } from 'ws';
import type { BoundWebSocket, DialectName } from '../call/bind.ts';
import { connectRoute, type OpenedConnection } from '../call/call-route.ts';
import type { CallControl } from '../call/control.ts';
import { logRequest } from './answers/request-log.ts';
import { callOf, routeOptions, sendResponse } from './contract-routes.ts';
import type { EntryPoint } from './entry-point.ts';
import { processDialect } from './connections/process-dialect.ts';
import { commandDialect, terminalDialect } from './connections/terminal-dialect.ts';
import { TUNNEL_DIALECT } from './connections/tunnel-dialect.ts';
import { websocketAuthorization } from './connections/websocket-bearer.ts';
import { join, type Dialect } from './connections/websocket-join.ts';
import { WebSockets } from './connections/websockets.ts';

const DIALECTS: { readonly [name in DialectName]: () => Dialect } = {
  tunnel: () => TUNNEL_DIALECT,
  terminal: terminalDialect,
  command: commandDialect,
  process: processDialect,
};

interface SandboxConnectionsOptions {
  /** Interval of pings on an open WebSocket; the contract's when absent. */
  pingEveryMs?: number | undefined;
}

/** Takes every remaining upgrade: list it last. */
export function sandboxConnections(control: CallControl, options: SandboxConnectionsOptions = {}): EntryPoint {
  const sockets = new WebSockets();
  return {
    register: (app) => {
      sockets.register(app);
      for (const bound of control.routes) {
        if (!('connect' in bound)) continue;
        app.route(
          routeOptions(bound, async (request, reply) => {
            await serve(control, bound, sockets, options, request, reply);
            return reply;
          }),
        );
      }
    },
    handlesUpgrade: (request, socket, head) => sockets.handlesUpgrade(request, socket, head),
  };
}

async function serve(
  control: CallControl,
  bound: BoundWebSocket,
  sockets: WebSockets,
  { pingEveryMs }: SandboxConnectionsOptions,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const call = callOf(request, reply, websocketAuthorization(request.raw), () => undefined);
  call.onStart = () => sockets.require(request, reply);
  const opened = await connectRoute(control, bound, call);
  if (!('connection' in opened)) {
    if (sockets.refuse(request, reply, opened)) logRequest(request, reply, { status: opened.status });
    else void sendResponse(reply, opened);
    return;
  }
  // Synchronous from here: errors of the connection or its caller always find a listener.
  const websocket = acceptOrClose(sockets, opened, request, reply);
  logRequest(request, reply, { status: 101 });
  control.onAnswer?.(bound.route, undefined);
  const openedAt = performance.now();
  const dialect = DIALECTS[opened.speech]();
  void join(websocket, opened.connection, dialect, { log: request.log, pingEveryMs }).then((code) => {
    const seconds = Math.round((performance.now() - openedAt) / 1_000);
    request.log.info({ path: bound.route.path, closeCode: code, seconds }, 'WebSocket closed');
  });
}

function acceptOrClose(
  sockets: WebSockets,
  { connection, headers }: OpenedConnection,
  request: FastifyRequest,
  reply: FastifyReply,
): WebSocket {
  try {
    return sockets.accept(request, reply.headers(headers));
  } catch (error) {
    connection.close();
    throw error;
  }
}
