// The daemon's HTTP server: listens on a unix socket or TCP, lets in who knows the token, finds the
// route, answers failures. Must not know VMs.
import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chown, rm } from 'node:fs/promises';
import type { Duplex } from 'node:stream';
import { STREAM_HEAD_BYTES } from '@berth/protocol/guest.ts';
import type { SpliceBounds } from '@berth/protocol/splice.ts';
import type { Logger } from 'pino';
import { HostError } from '../vm/host-error.ts';
import { answerError } from './answer.ts';
import { refuseStream, serveStream, type StreamRoute } from './streams.ts';
import { idIn, type Route } from './route.ts';

/**
 * For a whole request to arrive; the local control plane takes milliseconds. Answers may take as
 * long as a command.
 */
const REQUEST_MS = 60_000;
/**
 * Longer than the control plane keeps an idle connection, so that it never sends on one that is
 * closing.
 */
const KEEP_ALIVE_MS = 120_000;
const BOUNDS = {
  requestTimeout: REQUEST_MS,
  keepAliveTimeout: KEEP_ALIVE_MS,
  maxHeaderSize: STREAM_HEAD_BYTES,
} as const;

export type ListenOn = { socket: string; uid: number | null; gid: number | null } | { address: string; port: number };

export interface ServerParts {
  routes: readonly Route[];
  streamRoutes: readonly StreamRoute[];
  streamBounds: Required<SpliceBounds>;
  token: string;
  log: Logger;
}

export class HostServer {
  readonly #parts: ServerParts;
  readonly #tokenHash: Buffer;
  readonly #server: Server;
  /** Connections that are no HTTP any more, or are about to be. */
  readonly #streams = new Set<Duplex>();
  #calls = 0;
  #closing = false;

  constructor(parts: ServerParts) {
    this.#parts = parts;
    this.#tokenHash = sha256(parts.token);
    this.#server = createServer({ ...BOUNDS, noDelay: true }, (request, response) => {
      void this.#serve(request, response);
    });
    this.#server.on('upgrade', (request, caller, head) => void this.#serveStream(request, caller, head));
  }

  /**
   * Resolves with the address it listens on, as a URL (`unix:/path` or `http://...`). A socket file
   * left by an earlier daemon is replaced.
   */
  async listen(on: ListenOn): Promise<string> {
    const listening = Promise.withResolvers<void>();
    this.#server.once('error', listening.reject);
    if ('socket' in on) {
      await rm(on.socket, { force: true });
      // Bound within this call: at no moment can anyone else open it.
      const umask = process.umask(0o177);
      this.#server.listen({ path: on.socket }, listening.resolve);
      process.umask(umask);
    } else {
      this.#server.listen({ host: on.address, port: on.port }, listening.resolve);
    }
    await listening.promise;
    this.#server.off('error', listening.reject);
    if ('socket' in on) {
      if (on.uid !== null || on.gid !== null)
        await chown(on.socket, on.uid ?? process.getuid?.() ?? 0, on.gid ?? process.getgid?.() ?? 0);

      return `unix:${on.socket}`;
    }
    const { address, port } = this.#server.address() as AddressInfo;
    return `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
  }

  /**
   * Takes no new calls; those under way get until the signal aborts, then their connections are
   * cut. Streams are whose VMs they go to to close.
   */
  async close(patience: AbortSignal): Promise<void> {
    const closed = Promise.withResolvers<void>();
    const cut = (): void => {
      this.#server.closeAllConnections();
      this.#streams.forEach((stream) => stream.destroy());
    };
    patience.addEventListener('abort', cut, { once: true });
    this.#closing = true;
    this.#server.close(() => closed.resolve());
    this.#server.closeIdleConnections();
    if (patience.aborted) cut();

    await closed.promise;
    patience.removeEventListener('abort', cut);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const startedMs = performance.now();
    const log = this.#parts.log.child({ call: ++this.#calls, method: request.method, path: pathOf(request) });
    const gone = new AbortController();
    response.once('close', () => {
      if (this.#closing) {
        // Kept open it would hold up the close until the caller lets go of it.
        request.socket.end();
      }
      if (!response.writableFinished) gone.abort(new DOMException('the caller went away', 'AbortError'));

      log.debug(
        {
          status: response.statusCode,
          finished: response.writableFinished,
          tookMs: Math.round(performance.now() - startedMs),
        },
        'a call',
      );
    });
    // A body that breaks off; whoever reads it sees the failure there.
    request.on('error', (error) => log.debug({ err: error }, 'a request broke off'));
    try {
      this.#letIn(request);
      await this.#route(request, response, gone.signal);
    } catch (error) {
      if (gone.signal.aborted) log.debug({ err: error }, 'the caller went away');
      else answerError(response, error, log);
    }
  }

  async #serveStream(request: IncomingMessage, caller: Duplex, head: Buffer): Promise<void> {
    const log = this.#parts.log.child({ call: ++this.#calls, method: request.method, path: pathOf(request) });
    this.#streams.add(caller);
    caller.once('close', () => this.#streams.delete(caller));
    // What broke is seen by whoever splices it; until then nobody has a use for it.
    caller.on('error', (error) => log.debug({ err: error }, 'the connection of a stream broke'));
    if (head.length > 0) caller.unshift(head);

    try {
      this.#letIn(request);
      if (this.#closing) throw new HostError('internal', 'the host daemon is shutting down');

      await serveStream(this.#parts.streamRoutes, this.#parts.streamBounds, request, caller, log);
    } catch (error) {
      refuseStream(caller, error, log);
    }
  }

  #letIn(request: IncomingMessage): void {
    const token = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    if (!timingSafeEqual(sha256(token), this.#tokenHash))
      throw new HostError('unauthorized', 'the bearer token is missing or wrong');
  }

  async #route(request: IncomingMessage, response: ServerResponse, signal: AbortSignal): Promise<void> {
    const path = pathOf(request);
    for (const route of this.#parts.routes) {
      const match = route.method === request.method ? route.path.exec(path) : null;
      if (match !== null) {
        const url = new URL(request.url ?? '/', 'http://host.invalid');
        await route.handle({ request, response, url, id: idIn(match), signal });
        return;
      }
    }
    const stream = this.#parts.streamRoutes.find((known) => request.method === 'GET' && known.path.test(path));
    if (stream !== undefined) {
      throw new HostError(
        'invalid_request',
        `${path} is a stream: ask for it with Connection: Upgrade and Upgrade: ${stream.protocol}`,
      );
    }

    throw new HostError('route_not_found', `no route ${request.method ?? ''} ${path}`);
  }
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? '/').split('?', 1)[0] ?? '/';
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
