// The last part of a WebSocket route's way: what it is joined with is opened first, so that what
// goes wrong is a JSON error, then the request leaves HTTP.
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { WebSocket } from 'ws';
import type { BoundWebSocket, Speech } from '../../call/bind.ts';
import type { SandboxConnection } from '../../services/connections/connections.ts';
import type { ServiceContext } from '../../services/context/context.ts';
import { abortedWhenGone } from '../answers/caller-gone.ts';
import { logRequest } from '../requests/request-log.ts';
import { commandDialect, terminalDialect } from './terminal-dialect.ts';
import { TUNNEL_DIALECT } from './tunnel-dialect.ts';
import { parseWith } from '../../call/validation.ts';
import { join, type Dialect } from './websocket-join.ts';
import type { WebSockets } from './websockets.ts';

const DIALECTS: { readonly [name in Speech]: () => Dialect } = {
  tunnel: () => TUNNEL_DIALECT,
  terminal: terminalDialect,
  command: commandDialect,
};

export interface WebSocketOptions {
  context: ServiceContext;
  pingEveryMs?: number;
}

/** Answers a request of the route: a failure is thrown before anything is sent. */
export async function answerWebSocket(
  { context, pingEveryMs }: WebSocketOptions,
  sockets: WebSockets,
  bound: BoundWebSocket,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const { route } = bound;
  const { actor, bearer, sandbox } = request;
  if (actor === undefined || bearer === undefined || sandbox === undefined)
    throw new Error(`${route.name} is open, or names no sandbox`);
  const query = route.request.query === undefined ? undefined : parseWith(route.request.query, request.query, 'query');
  sockets.require(request, reply);
  const signal = abortedWhenGone(reply);
  const connection = await bound.connect(context, { route, actor, bearer, sandbox, signal }, query);
  // All in one turn from here: whatever comes of the connection or of its caller finds somebody who
  // listens.
  const websocket = acceptOrClose(sockets, connection, request, reply);
  logRequest(request, reply, { status: 101 });
  const openedAt = performance.now();
  void join(websocket, connection, DIALECTS[bound.speaks(query)](), { log: request.log, pingEveryMs }).then((code) => {
    const seconds = Math.round((performance.now() - openedAt) / 1_000);
    request.log.info({ path: route.path, caller: actor.id, closeCode: code, seconds }, 'a WebSocket was closed');
  });
}

function acceptOrClose(
  sockets: WebSockets,
  connection: SandboxConnection,
  request: FastifyRequest,
  reply: FastifyReply,
): WebSocket {
  try {
    return sockets.accept(request, reply);
  } catch (error) {
    connection.close();
    throw error;
  }
}
