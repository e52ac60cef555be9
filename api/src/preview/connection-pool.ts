// Connections to the apps of one VM, opened through its host, limited in number and kept alive for
// a while. Knows nothing of the requests sent over them.
import { Agent, type ClientRequestArgs } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { HostClient, OwnedVm } from '../hosts/client.ts';

/** Idle time before a connection is closed. Apps that close earlier announce it, or just do. */
const IDLE_MS = 15_000;
/** Idle connections kept for each port. */
const IDLE_CONNECTIONS = 64;

/** The callback's type demands a stream; Node's agent ignores it after an error. */
const NO_STREAM = undefined as unknown as Duplex;

/** The message names the limit. */
export class TooManyConnections extends Error {
  override readonly name = 'TooManyConnections';
}

interface ConnectionPoolOptions {
  host: HostClient;
  vm: OwnedVm;
  /** Maximum of open connections, including those being opened. */
  limit: number;
  /** Called when the last connection has closed. */
  onEmpty(): void;
}

export class ConnectionPool {
  /** Keeps connections alive. The app may close one on reuse: for repeatable requests only. */
  readonly shared: Agent;
  /** Opens a connection for each request. */
  readonly dedicated: Agent;
  /** Time of the last recorded activity, by `performance.now()`. */
  notedAtMs = Number.NEGATIVE_INFINITY;
  readonly #options: ConnectionPoolOptions;
  #open = 0;

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
    const connect: Connect = (port, callback) => void this.#connect(port, callback);
    this.shared = new PortAgent(connect, { keepAlive: true, timeout: IDLE_MS, maxFreeSockets: IDLE_CONNECTIONS });
    this.dedicated = new PortAgent(connect, { keepAlive: false });
  }

  /** Closes idle connections, and the others after their request. */
  retire(): void {
    (this.shared as Agent & { keepAlive: boolean }).keepAlive = false;
    for (const socket of this.#idle()) socket.destroy();
  }

  /** Closes all connections. */
  destroy(): void {
    this.shared.destroy();
    this.dedicated.destroy();
  }

  async #connect(port: number, callback: ConnectCallback): Promise<void> {
    const { host, vm, limit } = this.#options;
    if (this.#open >= limit && !this.#closeIdle()) {
      callback(new TooManyConnections(`this API replica has reached its limit of ${limit} for the sandbox`), NO_STREAM);
      return;
    }
    this.#open += 1;
    let stream: Duplex;
    try {
      stream = await host.openPort(vm, port);
    } catch (error) {
      this.#closed();
      callback(error as Error, NO_STREAM);
      return;
    }
    stream.once('close', () => this.#closed());
    // HTTP does not use half-open connections; web-socket.ts enables them again.
    stream.allowHalfOpen = false;
    callback(null, stream);
  }

  /** Closes an idle connection to make room. Returns false when there is none. */
  #closeIdle(): boolean {
    const [idle] = this.#idle();
    if (idle === undefined) return false;
    // Uncount the connection at once; its close event uncounts it again.
    this.#open -= 1;
    idle.once('close', () => (this.#open += 1));
    idle.destroy();
    return true;
  }

  #closed(): void {
    this.#open -= 1;
    if (this.#open === 0) this.#options.onEmpty();
  }

  #idle(): Socket[] {
    return Object.values(this.shared.freeSockets).flatMap((sockets) => sockets ?? []);
  }
}

type ConnectCallback = (error: Error | null, stream: Duplex) => void;
type Connect = (port: number, callback: ConnectCallback) => void;

/** Connects by port; the host name is ignored. */
class PortAgent extends Agent {
  readonly #connect: Connect;

  constructor(connect: Connect, options: ConstructorParameters<typeof Agent>[0]) {
    super(options);
    this.#connect = connect;
  }

  override createConnection({ port }: ClientRequestArgs, callback?: ConnectCallback): undefined {
    if (callback !== undefined) this.#connect(Number(port), callback);
  }

  override getName(options?: ClientRequestArgs): string {
    return String(options?.port);
  }
}
