// Connections into one sandbox's machine, as Node's HTTP client takes them: opened through the
// host, kept for the next request for a while, bounded in number. Must not know what is asked over
// them.
import { Agent, type ClientRequest, type ClientRequestArgs } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/**
 * A connection that nobody has used for this long is closed. An app that closes earlier says so, by
 * a header or by doing it.
 */
const KEPT_MS = 15_000;
/** Of one port, and unused. */
const KEPT_CONNECTIONS = 64;

/** Learns of the client's request that was made for it. */
export interface Asking {
  asked(outgoing: ClientRequest): void;
}

export class TooManyConnections extends Error {
  override readonly name = 'TooManyConnections';
}

export interface MachineConnectionsOptions {
  open(port: number): Promise<Duplex>;
  /** Open at once, those that are being opened included. */
  most: number;
  /** The last connection is closed. */
  onUnused(): void;
}

export class MachineConnections {
  /**
   * Connections that may have been used before: the app may be closing one at this very moment, so
   * that what is asked must be repeatable.
   */
  readonly pooled: Agent;
  /** A connection of its own for each request. */
  readonly single: Agent;
  /** When a sign of use was noted last, by `performance.now()`. */
  notedAtMs = Number.NEGATIVE_INFINITY;
  readonly #options: MachineConnectionsOptions;
  #open = 0;

  constructor(options: MachineConnectionsOptions) {
    this.#options = options;
    const dial = (port: number): Promise<Duplex> => this.#dial(port);
    this.pooled = new PortAgent(dial, { keepAlive: true, timeout: KEPT_MS, maxFreeSockets: KEPT_CONNECTIONS });
    this.single = new PortAgent(dial, { keepAlive: false });
  }

  get open(): number {
    return this.#open;
  }

  /** Closes those that nobody uses; the others are not kept any more. */
  retire(): void {
    (this.pooled as Agent & { keepAlive: boolean }).keepAlive = false;
    for (const socket of this.#unused()) socket.destroy();
  }

  /** Closes all of them. */
  destroy(): void {
    this.pooled.destroy();
    this.single.destroy();
  }

  async #dial(port: number): Promise<Duplex> {
    if (this.#open >= this.#options.most) {
      const [unused] = this.#unused();
      if (unused === undefined) throw new TooManyConnections(`${this.#open} connections are open`);
      // It is counted until it is closed, which it is about to be.
      this.#open -= 1;
      unused.once('close', () => (this.#open += 1));
      unused.destroy();
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
    // HTTP has no use for half a connection; one that becomes a WebSocket is given it back.
    stream.allowHalfOpen = false;
    return stream;
  }

  #closed(): void {
    this.#open -= 1;
    if (this.#open === 0) this.#options.onUnused();
  }

  #unused(): Socket[] {
    return Object.values(this.pooled.freeSockets).flatMap((sockets) => sockets ?? []);
  }
}

/** What the types of Node leave out of its agents. */
interface RequestTaking {
  addRequest(this: Agent, request: ClientRequest, options: ClientRequestArgs & { asking?: Asking }): void;
}
const AGENT = Agent.prototype as unknown as RequestTaking;

class PortAgent extends Agent {
  readonly #dial: (port: number) => Promise<Duplex>;

  constructor(dial: (port: number) => Promise<Duplex>, options: ConstructorParameters<typeof Agent>[0]) {
    super(options);
    this.#dial = dial;
  }

  addRequest(request: ClientRequest, options: ClientRequestArgs & { asking?: Asking }): void {
    options.asking?.asked(request);
    AGENT.addRequest.call(this, request, options);
  }

  override createConnection(
    options: ClientRequestArgs,
    callback?: (error: Error | null, stream: Duplex) => void,
  ): Duplex | null | undefined {
    void this.#connect(Number(options.port), callback);
    return undefined;
  }

  async #connect(port: number, callback: ((error: Error | null, stream: Duplex) => void) | undefined): Promise<void> {
    let stream: Duplex;
    try {
      stream = await this.#dial(port);
    } catch (error) {
      // The agent looks at the error first, and there is nothing else.
      callback?.(error as Error, undefined as unknown as Duplex);
      return;
    }
    callback?.(null, stream);
  }

  override getName(options?: ClientRequestArgs): string {
    return String(options?.port);
  }
}
