// What the server consists of besides itself: paths it serves, and requests that leave it early.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

export interface EntryPoint {
  /** Registers paths and hooks. */
  register?(app: FastifyInstance): void;
  /** Takes a request before any hook or route sees it; false leaves it to the others. */
  takes?(request: IncomingMessage, response: ServerResponse): boolean;
  /** The same for a request that asks to become a WebSocket; `head` came right behind it. */
  takesUpgrade?(request: IncomingMessage, socket: Socket, head: Buffer): boolean;
}
