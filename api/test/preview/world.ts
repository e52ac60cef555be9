// World of preview tests: the whole API, a sandbox whose ports lead to test servers on loopback,
// and a visitor of the preview host.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http, { type IncomingHttpHeaders, type IncomingMessage, type RequestListener } from 'node:http';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { splice } from '@berth/protocol/splice.ts';
import { WebSocket, WebSocketServer } from 'ws';
import { startApi, type TestApi, type TestApiOptions } from '../world/api.ts';
import { ExecRefusal } from '../world/guests/exec-refusal.ts';

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  rawHeaders: string[];
  trailers: NodeJS.Dict<string>;
  body: Buffer;
  text: string;
}

export interface RequestOptions {
  method?: string;
  headers?: http.OutgoingHttpHeaders;
  body?: string | Buffer;
  host?: string;
  agent?: http.Agent;
}

export class PreviewWorld {
  readonly api: TestApi;
  readonly sandboxId: string;
  /** Preview host of port 3000. */
  readonly host: string;
  /** Token of a public link to port 3000. */
  readonly token: string;
  readonly linkId: string;
  /** Connections from the API into the sandbox, oldest first: port and the sandbox's end. */
  readonly opened: { port: number; socket: Socket }[] = [];
  readonly #servers: Server[];
  readonly #ports: Map<number, number>;
  #cookie: string | undefined;

  constructor(
    api: TestApi,
    sandboxId: string,
    link: { id: string; url: string },
    ports: Map<number, number>,
    servers: Server[],
  ) {
    this.api = api;
    this.sandboxId = sandboxId;
    const url = new URL(link.url);
    this.host = url.host;
    this.token = url.searchParams.get('token') ?? '';
    this.linkId = link.id;
    this.#ports = ports;
    this.#servers = servers;
    api.secret(this.token, 'a token of a preview link');
    api.front.stream = (vmId, target) => this.#open(vmId, target);
  }

  get port(): number {
    return Number(new URL(this.api.url).port);
  }

  /** `Cookie` header that gives access, as after opening the link. */
  async cookie(): Promise<string> {
    if (this.#cookie === undefined) {
      const { headers, status } = await this.ask(`/?token=${this.token}`);
      const cookie = headers['set-cookie']?.find((one) => /^(__Host-)?berth_preview=/.test(one));
      assert.ok(cookie !== undefined, `status ${status}`);
      this.#cookie = cookie.split(';', 1)[0] ?? '';
      this.api.secret(this.#cookie.slice(this.#cookie.indexOf('=') + 1), 'the cookie of a preview');
    }
    return this.#cookie;
  }

  /** Requests with the access cookie unless `headers` has one. */
  async visit(path: string, options: RequestOptions = {}): Promise<Answer> {
    const { headers } = options;
    return await this.ask(path, {
      ...options,
      headers: { cookie: headers?.['cookie'] ?? (await this.cookie()), ...headers },
    });
  }

  /** Requests without the access cookie. */
  async ask(path: string, options: RequestOptions = {}): Promise<Answer> {
    const { request, answer } = await this.begin(path, options);
    request.end(options.body);
    return await readAll(await answer);
  }

  /** Begins a request; the caller writes and ends the body. */
  begin(
    path: string,
    { method = 'GET', headers = {}, host = this.host, agent }: RequestOptions = {},
  ): Promise<{ request: http.ClientRequest; answer: Promise<IncomingMessage> }> {
    const request = http.request({
      host: '127.0.0.1',
      port: this.port,
      path,
      method,
      agent: agent ?? false,
      headers: { ...headers, host },
    });
    const answer = new Promise<IncomingMessage>((resolve, reject) => {
      request.once('response', resolve);
      request.once('error', reject);
    });
    // Callers that await it get the error.
    answer.catch(() => undefined);
    return Promise.resolve({ request, answer });
  }

  /** Sends the bytes; returns all bytes until the connection closes. */
  async raw(bytes: string | Buffer, { end = false } = {}): Promise<string> {
    const socket = connect({ port: this.port, host: '127.0.0.1', allowHalfOpen: true });
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('error', () => undefined);
    socket.write(bytes);
    if (end) socket.end();
    socket.once('end', () => socket.end());
    await once(socket, 'close');
    return Buffer.concat(chunks).toString('latin1');
  }

  async webSocket(
    path: string,
    { protocols = [], headers = {} }: { protocols?: string[]; headers?: Record<string, string> } = {},
  ): Promise<WebSocket> {
    const socket = await this.openWebSocket(path, protocols, headers);
    await once(socket, 'open');
    return socket;
  }

  async openWebSocket(
    path: string,
    protocols: string[] = [],
    headers: Record<string, string> = {},
  ): Promise<WebSocket> {
    const cookie = headers['cookie'] ?? (await this.cookie());
    return new WebSocket(`ws://127.0.0.1:${this.port}${path}`, protocols, {
      headers: { host: this.host, ...headers, cookie },
      perMessageDeflate: false,
    });
  }

  /** Routes a port of the sandbox to another test server. */
  async serve(port: number, server: Server): Promise<void> {
    this.#servers.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    this.#ports.set(port, (server.address() as AddressInfo).port);
  }

  /** Creates a public link to another port or sandbox; returns host and token. */
  async link(
    port: number,
    sandboxId = this.sandboxId,
    body: object = {},
  ): Promise<{ id: string; host: string; token: string }> {
    const made = await this.api.call('POST', `/v1/sandboxes/${sandboxId}/previews`, {
      body: { port, audience: 'public', ...body },
    });
    const url = new URL(made.body.preview.url);
    return {
      id: made.body.preview.id,
      host: url.host,
      token: this.api.secret(url.searchParams.get('token') ?? '', 'a token of a preview link'),
    };
  }

  async close(): Promise<void> {
    for (const { socket } of this.opened) socket.destroy();
    await this.api.close();
    for (const server of this.#servers) {
      (server as Partial<http.Server>).closeAllConnections?.();
      server.close();
    }
  }

  async #open(vmId: string, target: string): Promise<(caller: Duplex) => void> {
    assert.equal(vmId, this.sandboxId);
    const port = Number(/^ports\/(\d+)$/.exec(target)?.[1]);
    const local = this.#ports.get(port);
    if (local === undefined) throw new ExecRefusal('port_refused', `nothing listens on port ${port} of the guest`);
    const socket = connect({ port: local, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    this.opened.push({ port, socket });
    return (caller) => void splice(caller as Socket, socket);
  }
}

/** Sandbox whose port 3000 leads to the server; its WebSockets run `onWebSocket` or echo. */
export async function startPreview(
  app: RequestListener | Server,
  options: Partial<TestApiOptions> & { onWebSocket?: (socket: WebSocket, request: IncomingMessage) => void } = {},
): Promise<PreviewWorld> {
  const server = typeof app === 'function' ? http.createServer({ keepAliveTimeout: 60_000 }, app) : app;
  if (typeof app === 'function') {
    const sockets = new WebSocketServer({
      server: server as http.Server,
      maxPayload: 64 * 1_048_576,
      handleProtocols: (offered) => [...offered].at(-1) ?? false,
    });
    sockets.on(
      'connection',
      options.onWebSocket ??
        ((socket) => socket.on('message', (data: Buffer, isBinary) => socket.send(data, { binary: isBinary }))),
    );
  }
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const api = await startApi({ durable: false, ...options });
  const { id } = await api.makeSandbox('ready');
  const made = await api.call('POST', `/v1/sandboxes/${id}/previews`, { body: { port: 3000, audience: 'public' } });
  assert.equal(made.status, 201);
  return new PreviewWorld(api, id, made.body.preview, new Map([[3000, (server.address() as AddressInfo).port]]), [
    server,
  ]);
}

/** Server that passes each raw connection to `onConnection`. */
export function bareServer(onConnection: (socket: Socket) => void): Server {
  return createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined);
    onConnection(socket);
  });
}

export async function readAll(answer: IncomingMessage): Promise<Answer> {
  const body = Buffer.concat((await answer.toArray()) as Buffer[]);
  const { headers, rawHeaders, trailers } = answer;
  return { status: answer.statusCode ?? 0, headers, rawHeaders, trailers, body, text: body.toString('utf8') };
}
