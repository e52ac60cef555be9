// Connections to the apps of one VM, opened through its host, limited in number and kept alive for
// a while. Knows nothing of the requests sent over them.
import { Agent, type ClientRequestArgs } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** Idle time after which a connection is closed. Apps that close earlier announce it, or just do. */
const IDLE_MS = 15_000;
/** Idle connections kept for each port. */
const IDLE_CONNECTIONS = 64;

export class TooManyConnections extends Error {
  override readonly name = 'TooManyConnections';
}

export interface ConnectionPoolOptions {
  open(port: number): Promise<Duplex>;
  /** Maximum of open connections, including those being opened. */
  limit: number;
  /** Called when the last connection has closed. */
  onEmpty(): void;
}

export class ConnectionPool {
  /** Keeps connections alive. The app may close one as it is reused: for repeatable requests only. */
  readonly shared: Agent;
  /** Opens a connection for each request. */
  readonly dedicated: Agent;
  /** Time of the last recorded activity, by `performance.now()`. */
  notedAtMs = Number.NEGATIVE_INFINITY;
  readonly #options: ConnectionPoolOptions;
  #open = 0;

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
    const dial = (port: number): Promise<Duplex> => this.#dial(port);
    this.shared = new PortAgent(dial, { keepAlive: true, timeout: IDLE_MS, maxFreeSockets: IDLE_CONNECTIONS });
    this.dedicated = new PortAgent(dial, { keepAlive: false });
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

  async #dial(port: number): Promise<Duplex> {
    if (this.#open >= this.#options.limit) {
      const [idle] = this.#idle();
      if (idle === undefined) throw new TooManyConnections(`${this.#open} connections are open`);
      // Stop counting it now; its close event subtracts once more.
      this.#open -= 1;
      idle.once('close', () => (this.#open += 1));
      idle.destroy();
    }
    this.#open += 1;
    let stream: Duplex;
    try {
      stream = await this.#options.open(port);
    } catch (error) {
      this.#closed();
      throw error;
    }
    stream.once('close', () => this.#closed());
    // HTTP has no use for half-open connections; web-socket.ts sets it back.
    stream.allowHalfOpen = false;
    return stream;
  }

  #closed(): void {
    this.#open -= 1;
    if (this.#open === 0) this.#options.onEmpty();
  }

  #idle(): Socket[] {
    return Object.values(this.shared.freeSockets).flatMap((sockets) => sockets ?? []);
  }
}

/** Opens connections by port; the host name is ignored. */
class PortAgent extends Agent {
  readonly #dial: (port: number) => Promise<Duplex>;

  constructor(dial: (port: number) => Promise<Duplex>, options: ConstructorParameters<typeof Agent>[0]) {
    super(options);
    this.#dial = dial;
  }

  override createConnection(
    { port }: ClientRequestArgs,
    callback?: (error: Error | null, stream: Duplex) => void,
  ): undefined {
    void this.#connect(Number(port), callback);
  }

  async #connect(port: number, callback: ((error: Error | null, stream: Duplex) => void) | undefined): Promise<void> {
    let stream: Duplex;
    try {
      stream = await this.#dial(port);
    } catch (error) {
      // The agent checks the error first; its type demands a stream all the same.
      callback?.(error as Error, undefined as unknown as Duplex);
      return;
    }
    callback?.(null, stream);
  }

  override getName(options?: ClientRequestArgs): string {
    return String(options?.port);
  }
}
