// The daemon's HTTP server: listens on a unix socket or TCP, admits callers with the token and
// serves the calls. Must not know VMs.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { chown, rm } from 'node:fs/promises';
import type { Duplex } from 'node:stream';
import { KEEPALIVE_SPACE_MS } from '@berth/protocol/calls/define.ts';
import { STREAM_HEAD_BYTES } from '@berth/protocol/guest.ts';
import { LISTEN_BACKLOG } from '@berth/protocol/http/backlog.ts';
import { CallServer, type Part, type Received, type Reply } from '@berth/protocol/http/serve.ts';
import { splice, type SpliceBounds } from '@berth/protocol/splice.ts';
import type { Logger } from 'pino';
import { z } from 'zod';
import { HostError } from '../vm/host-error.ts';
import type { BoundCall } from './calls.ts';
import type { HostTokens } from './host-tokens.ts';
import { refusalOf } from './refusal.ts';

/**
 * Time for a whole request to arrive; the local control plane takes milliseconds. Responses may
 * take as long as a command.
 */
const REQUEST_MS = 60_000;
/**
 * Longer than the idle time of the control plane's connections, so that it never sends on a closing
 * one.
 */
const KEEP_ALIVE_MS = 120_000;
/** Time after which TCP probes a silent control plane, which closes its streams 10 s later. */
const PROBE_AFTER_MS = 20_000;
const BOUNDS = {
  keepAlive: true,
  keepAliveInitialDelay: PROBE_AFTER_MS,
  requestTimeout: REQUEST_MS,
  keepAliveTimeout: KEEP_ALIVE_MS,
  maxHeaderSize: STREAM_HEAD_BYTES,
} as const;

export type ListenOn = { socket: string; uid: number | null; gid: number | null } | { address: string; port: number };

interface ServerParts {
  calls: readonly BoundCall[];
  streamBounds: SpliceBounds;
  tokens: Pick<HostTokens, 'admits'>;
  log: Logger;
}

export class HostServer {
  readonly #parts: ServerParts;
  readonly #server: Server;
  readonly #calls: CallServer<BoundCall>;
  /** Connections that have left HTTP, or are about to. */
  readonly #streams = new Set<Duplex>();
  #closing = false;

  constructor(parts: ServerParts) {
    this.#parts = parts;
    this.#calls = new CallServer<BoundCall>({
      calls: parts.calls,
      spaceEveryMs: KEEPALIVE_SPACE_MS,
      admit: (request, call) => this.#admit(request, call),
      unknownCall: (route, upgrade) => new HostError('route_not_found', `no ${upgrade ? 'stream' : 'route'} ${route}`),
      check,
      handle: (call, received) => this.#handle(call, received),
      refusal: (error) => refusalOf(error, parts.log),
      brokeOff: (error) => parts.log.warn({ err: error }, 'a response was interrupted'),
    });
    this.#server = createServer({ ...BOUNDS, noDelay: true }, (request, response) => {
      void this.#serve(request, response);
    });
    this.#server.on('upgrade', (request, caller, head) => {
      this.#streams.add(caller);
      caller.once('close', () => this.#streams.delete(caller));
      void this.#calls.serveUpgrade(request, caller, head);
    });
  }

  /**
   * Resolves with the URL it listens on (`unix:/path` or `http://...`). Replaces a socket file left
   * by an earlier daemon.
   */
  async listen(on: ListenOn): Promise<string> {
    const listening = Promise.withResolvers<void>();
    this.#server.once('error', listening.reject);
    if ('socket' in on) {
      await rm(on.socket, { force: true });
      // Set for this call only: no other user can open the socket at any moment.
      const umask = process.umask(0o177);
      this.#server.listen({ path: on.socket, backlog: LISTEN_BACKLOG }, listening.resolve);
      process.umask(umask);
    } else {
      this.#server.listen({ host: on.address, port: on.port, backlog: LISTEN_BACKLOG }, listening.resolve);
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
   * Accepts no new calls; those in flight may finish until the signal aborts, then their
   * connections are cut. Streams belong to their VMs, which close them.
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
    response.once('close', () => {
      if (this.#closing) {
        // A kept connection would delay the close until the caller closes it.
        request.socket.end();
      }
      this.#parts.log.debug(
        {
          method: request.method,
          path: pathOf(request),
          status: response.statusCode,
          finished: response.writableFinished,
          tookMs: Math.round(performance.now() - startedMs),
        },
        'a call',
      );
    });
    await this.#calls.serve(request, response);
  }

  #admit(request: IncomingMessage, call: BoundCall | undefined): void {
    const token = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    if (!this.#parts.tokens.admits(token)) throw new HostError('unauthorized', 'the bearer token is missing or wrong');

    if (call?.form === 'upgrade' && this.#closing) throw new HostError('internal', 'the host daemon is shutting down');
  }

  async #handle(call: BoundCall, received: Received): Promise<Reply> {
    const reply = await call.handle(received);
    if (call.form !== 'upgrade') return reply;

    const { streamBounds, log } = this.#parts;
    return async (caller: Duplex) => {
      const startedMs = performance.now();
      const end = await splice(caller as Socket, reply as Socket, streamBounds);
      log.debug({ call: call.name, end, tookMs: Math.round(performance.now() - startedMs) }, 'a stream');
    };
  }
}

/** Throws `invalid_request` with the fault. */
function check({ schemas }: BoundCall, part: Part, value: unknown): unknown {
  if (part !== 'params') return parse(schemas[part], value, `the ${part}`);

  for (const [name, text] of Object.entries(value as Record<string, string>))
    parse(schemas.params[name], text, `the ${name === 'vmId' ? 'id' : name} in the path`);
  return value;
}

function parse(schema: z.ZodType | undefined, value: unknown, what: string): unknown {
  const parsed = schema?.safeParse(value);
  if (parsed?.success === false)
    throw new HostError('invalid_request', `${what} is not valid: ${z.prettifyError(parsed.error)}`);

  return parsed?.data;
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? '/').split('?', 1)[0] ?? '/';
}
