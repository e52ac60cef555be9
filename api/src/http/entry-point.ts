// An entry point of the server: serves paths, or takes requests before the router.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

export interface EntryPoint {
  /** Registers paths and hooks. */
  register?(app: FastifyInstance): void;
  /** Takes a request before any hook or route; returns false to leave it to the others. */
  handles?(request: IncomingMessage, response: ServerResponse): boolean;
  /** The same for a WebSocket upgrade; `head` holds the bytes that followed the request. */
  handlesUpgrade?(request: IncomingMessage, socket: Socket, head: Buffer): boolean;
}
