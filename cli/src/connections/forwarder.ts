// Joins local connections with tunnels, each alone: half-closes and back-pressure pass, and a
// failure ends one connection.
import { once } from 'node:events';
import type { Server, Socket } from 'node:net';
import { Writable } from 'node:stream';
import type { SandboxTunnel } from '@berth/sdk';
import { CliFailure } from '../output/failure.ts';
import type { Output } from '../output/output.ts';
import { reportOf } from '../output/report.ts';
import type { Connection } from '../service/connection.ts';
import { FORWARD_LIMITS } from './forward-ports.ts';
import { streamsOf } from './streams.ts';

/** An access token is replaced a minute before it expires. */
const RENEW_EVERY_MS = 30_000;

export class Forwarder {
  readonly #connect: () => Promise<Connection>;
  readonly #sandboxId: string;
  readonly #out: Output;
  readonly #sockets = new Set<Socket>();
  /** With the access token that each of them has. */
  readonly #tunnels = new Map<SandboxTunnel, string>();
  /** Last failure of each port, printed once until a connection succeeds. */
  readonly #failures = new Map<number, string>();
  readonly #closed = new AbortController();
  readonly #renewal: NodeJS.Timeout;

  constructor(connect: () => Promise<Connection>, sandboxId: string, out: Output) {
    this.#connect = connect;
    this.#sandboxId = sandboxId;
    this.#out = out;
    this.#renewal = setInterval(() => void this.#renew(), RENEW_EVERY_MS);
  }

  /** Forwards the connections of the server. */
  serve(server: Server, port: number): void {
    server.on('connection', (socket) => void this.#forward(socket, port));
    server.on('error', (error) => this.#failed(port, new CliFailure(`cannot accept a connection: ${error.message}`)));
  }

  /** Ends all connections. */
  close(): void {
    clearInterval(this.#renewal);
    this.#closed.abort();
    for (const socket of this.#sockets) socket.destroy();
  }

  async #forward(socket: Socket, port: number): Promise<void> {
    socket.on('error', () => undefined);
    if (this.#sockets.size >= FORWARD_LIMITS.connections) {
      socket.resetAndDestroy();
      this.#failed(port, new CliFailure(`${FORWARD_LIMITS.connections} connections are open, the limit`));
      return;
    }
    this.#sockets.add(socket);
    const left = new AbortController();
    socket.once('close', () => left.abort());
    try {
      const { signal } = this.#closed;
      const connection = await this.#connect();
      const token = await connection.token();
      const tunnel = await streamsOf(connection, this.#sandboxId).connect(port, { signal });
      this.#failures.delete(port);
      this.#tunnels.set(tunnel, token);
      try {
        await join(tunnel, socket, left.signal);
      } finally {
        this.#tunnels.delete(tunnel);
      }
    } catch (error) {
      const isLocal = left.signal.aborted || error === socket.errored;
      if (!isLocal && !this.#closed.signal.aborted) this.#failed(port, error);
      // Not an end: the client must not take a part for the whole.
      socket.resetAndDestroy();
    } finally {
      socket.destroy();
      this.#sockets.delete(socket);
    }
  }

  #failed(port: number, error: unknown): void {
    const { lines } = reportOf(error, { about: `port ${port}` });
    const [failure = ''] = lines;
    if (this.#failures.get(port) === failure) return;
    this.#failures.set(port, failure);
    lines.forEach((line) => this.#out.hint(line));
  }

  /** Keeps open tunnels beyond the lifetime of an access token. */
  async #renew(): Promise<void> {
    try {
      const token = await (await this.#connect()).token();
      for (const [tunnel, former] of this.#tunnels) {
        if (former === token) continue;
        tunnel.renew(token);
        this.#tunnels.set(tunnel, token);
      }
    } catch {
      // New connections report it; open ones last as long as their token.
    }
  }
}

/** Resolves when both directions have ended; rejects if the tunnel fails, or at the abort. */
async function join(tunnel: SandboxTunnel, socket: Socket, left: AbortSignal): Promise<void> {
  const sink = Writable.fromWeb(tunnel.writable);
  // `closed` rejects with the reason.
  sink.on('error', () => undefined);
  left.addEventListener('abort', () => tunnel.close(), { once: true });
  socket.pipe(sink);
  try {
    for await (const chunk of tunnel.readable) if (!socket.write(chunk)) await once(socket, 'drain', { signal: left });
    await new Promise<void>((resolve) => socket.end(() => resolve()));
    // The program has said all: a client that stays silent is not its failure.
    await tunnel.closed.catch(() => undefined);
  } finally {
    tunnel.close();
  }
}
