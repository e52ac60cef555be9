// Frames between the guest daemon and the keeper of processes: a length, then fields separated by
// NUL.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { hasCode } from '@berth/os/errors.ts';

/** Limit of a frame of the keeper, which sends words only. */
const FRAME_BYTES = 4_096;
const LENGTH_BYTES = 4;

/** Sends a frame of fields, each of which but the last has no NUL. */
export function send(socket: Socket, ...fields: readonly (string | number | Uint8Array)[]): void {
  const parts = fields.map((field) => (typeof field === 'object' ? field : Buffer.from(String(field))));
  const length = parts.reduce((sum, part) => sum + part.length + 1, -1);
  const frame = Buffer.alloc(LENGTH_BYTES + length);
  frame.writeUInt32BE(length);
  let at = LENGTH_BYTES;
  for (const part of parts) {
    frame.set(part, at);
    at += part.length + 1;
  }
  socket.write(frame);
}

/** Frames out of the chunks of a connection. */
export class Frames {
  readonly #take: (frame: Buffer) => void;
  #bytes: Buffer = Buffer.alloc(0);

  constructor(take: (frame: Buffer) => void) {
    this.#take = take;
  }

  /** Returns false for a frame beyond the limit. */
  push(chunk: Buffer): boolean {
    this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk]);
    while (this.#bytes.length >= LENGTH_BYTES) {
      const length = this.#bytes.readUInt32BE();
      if (length > FRAME_BYTES) return false;
      if (this.#bytes.length < LENGTH_BYTES + length) break;
      this.#take(this.#bytes.subarray(LENGTH_BYTES, LENGTH_BYTES + length));
      this.#bytes = this.#bytes.subarray(LENGTH_BYTES + length);
    }
    return true;
  }
}

/** Connects to the socket; null: nobody listens. */
export async function opened(path: string): Promise<Socket | null> {
  const socket = connect(path);
  try {
    await once(socket, 'connect');
    return socket;
  } catch (error) {
    socket.destroy();
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ECONNREFUSED')) return null;
    throw error;
  }
}
