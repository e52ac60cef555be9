// Connection pool to a guest daemon; can be seeded with an open connection. Must not know the
// calls.
import { Agent, type ClientRequestArgs } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** Fewer than the guest accepts, and more than the held calls of three API replicas. */
const CONNECTIONS = 1_000;
const IDLE_CONNECTIONS = 8;
const IDLE_MS = 10 * 60_000;

/** Keeps connections open between calls; a lent one is used before a new one is opened. */
export class GuestAgent extends Agent {
  readonly #handedOut: Socket[] = [];

  constructor() {
    super({
      keepAlive: true,
      maxSockets: CONNECTIONS,
      maxFreeSockets: IDLE_CONNECTIONS,
      scheduling: 'lifo',
      // Idle time; a shorter one announced by the guest (Keep-Alive: timeout) takes precedence.
      timeout: IDLE_MS,
    });
  }

  handOut(socket: Socket): void {
    socket.once('close', () => this.#take(socket));
    this.#handedOut.push(socket);
  }

  /** True if the next call needs no new connection. */
  hasOpen(): boolean {
    const kept = Object.values(this.freeSockets).flatMap((sockets) => sockets ?? []);
    return [...kept, ...this.#handedOut].some((socket) => !socket.destroyed && socket.readable);
  }

  override createConnection(
    options: ClientRequestArgs,
    callback?: (error: Error | null, stream: Duplex) => void,
  ): Duplex | null | undefined {
    const lent = this.#handedOut.find((socket) => !socket.destroyed && socket.readable);
    if (lent !== undefined) {
      this.#take(lent);
      return lent;
    }
    return super.createConnection(options, callback);
  }

  override destroy(): void {
    for (const socket of this.#handedOut.splice(0)) socket.destroy();

    super.destroy();
  }

  #take(socket: Socket): void {
    const at = this.#handedOut.indexOf(socket);
    if (at >= 0) this.#handedOut.splice(at, 1);
  }
}
