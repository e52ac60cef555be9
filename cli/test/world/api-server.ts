// A fake API for the CLI: WebSockets, JSON responses and refusals chosen by the test.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { WebSocketServer, type WebSocket } from 'ws';

export const TOKEN = 'brt_a_token_of_the_test';

export class ApiServer {
  readonly url: string;
  /** Handles a WebSocket. */
  answer: (socket: WebSocket, request: IncomingMessage) => void = () => undefined;
  /** Returns the response of other requests. */
  json: (request: IncomingMessage, body: unknown, response: ServerResponse) => unknown = () => ({});
  /** Refuses all requests if set. */
  refuse: { status: number; body: string; type?: string } | null = null;
  readonly #close: () => void;

  private constructor(port: number, close: () => void) {
    this.url = `http://127.0.0.1:${port}`;
    this.#close = close;
  }

  static async start(): Promise<ApiServer> {
    const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => 'berth.v1' });
    const server = createServer((request, response) => {
      void textOf(request).then(async (sent) => {
        const asked: unknown = sent === '' ? undefined : JSON.parse(sent);
        const {
          status,
          body,
          type = 'application/json',
        } = api.refuse ?? {
          status: 200,
          body: JSON.stringify(await api.json(request, asked, response)),
        };
        if (!response.destroyed) response.writeHead(status, { 'content-type': type }).end(body);
      });
    });
    server.on('upgrade', (request, socket, head) => {
      if (api.refuse !== null) {
        const { status, body } = api.refuse;
        socket.end(
          `HTTP/1.1 ${status} No\r\nconnection: close\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
        );
        return;
      }
      sockets.handleUpgrade(request, socket, head, (opened) => api.answer(opened, request));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const api = new ApiServer((server.address() as AddressInfo).port, () => {
      sockets.clients.forEach((socket) => socket.terminate());
      server.close();
      server.closeAllConnections();
    });
    return api;
  }

  /** Environment for this server. */
  get environment(): Record<string, string | undefined> {
    return { PATH: process.env['PATH'], HOME: process.env['HOME'], BERTH_URL: this.url, BERTH_API_KEY: TOKEN };
  }

  close(): void {
    this.#close();
  }
}

/** A refusal in the API's format. */
export function refusal(status: number, code: string, message: string): { status: number; body: string } {
  return { status, body: JSON.stringify({ error: { code, message } }) };
}
