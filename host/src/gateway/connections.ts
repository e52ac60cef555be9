// Connections to the gateway, kept between calls. One call at a time uses a connection, so the
// frames after an order belong to it.
import type { Socket } from 'node:net';
import { FrameReader } from './frames.ts';

/** Idle connections that are kept; a burst above it connects and closes. */
const IDLE = 32;

export interface Gateway {
  /** Resolves once it serves. Rejects when the signal aborts. */
  connect(signal: AbortSignal): Promise<Socket>;
}

export interface GatewayConnection {
  socket: Socket;
  reader: FrameReader;
}

export class GatewayConnections {
  readonly #gateway: Gateway;
  readonly #idle: (GatewayConnection & { drop: () => void })[] = [];

  constructor(gateway: Gateway) {
    this.#gateway = gateway;
  }

  async take(signal: AbortSignal): Promise<GatewayConnection> {
    const kept = this.#idle.pop();
    if (kept !== undefined) {
      const { socket, reader, drop } = kept;
      socket.off('readable', drop).off('close', drop);
      return { socket, reader };
    }
    const socket = await this.#gateway.connect(signal);
    return { socket, reader: new FrameReader(socket) };
  }

  /** Keeps a connection whose call is over: both sides have read all of it. */
  keep({ socket, reader }: GatewayConnection): void {
    if (socket.destroyed || socket.readableLength > 0 || this.#idle.length >= IDLE) {
      socket.destroy();
      return;
    }
    // Readable without an order: the gateway has gone, or sends what nobody asked for.
    const drop = (): void => {
      this.#idle.splice(this.#idle.indexOf(kept), 1);
      socket.off('readable', drop).off('close', drop).destroy();
    };
    const kept = { socket, reader, drop };
    this.#idle.push(kept);
    socket.on('readable', drop).on('close', drop);
  }
}
