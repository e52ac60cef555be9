// Messages between the host daemon and its guest gateway, over one Unix connection per call: a
// kind, a length, and that many bytes. The reader bounds each frame: the gateway parses data of
// guests and may be compromised.
import type { Readable, Writable } from 'node:stream';

/**
 * `order`: the call, as JSON. `result`: the response as JSON, or the acceptance of a stream.
 * `chunk`: bytes of a streamed response. `end`: the order is carried out, and the connection takes
 * the next. `failure`: an error, as JSON; the connection ends.
 */
export const FRAME = { order: 1, result: 2, chunk: 3, end: 4, failure: 5 } as const;
type FrameKind = (typeof FRAME)[keyof typeof FRAME];

export interface Frame {
  kind: number;
  payload: Buffer;
}

const HEAD_BYTES = 5;

/** A frame that is longer than allowed, or a connection that ended within one. */
export class FrameFault extends Error {}

/** Returns false if the stream's buffer is full. */
export function writeFrame(stream: Writable, kind: FrameKind, payload: Uint8Array = Buffer.alloc(0)): boolean {
  const head = Buffer.allocUnsafe(HEAD_BYTES);
  head.writeUInt8(kind, 0);
  head.writeUInt32BE(payload.byteLength, 1);
  stream.cork();
  stream.write(head);
  const drained = stream.write(payload);
  process.nextTick(() => stream.uncork());
  return drained;
}

export function writeJson(stream: Writable, kind: FrameKind, value: unknown): void {
  writeFrame(stream, kind, Buffer.from(JSON.stringify(value)));
}

/**
 * Reads a connection. Listens once: a listener for 'readable' that is added again while part of a
 * frame waits would run at once, and for ever.
 */
export class FrameReader {
  readonly #stream: Readable;
  #wake: (() => void) | null = null;

  constructor(stream: Readable) {
    this.#stream = stream;
    for (const name of EVENTS) stream.on(name, this.#onEvent);
  }

  /** Reads the next frame; null at an end between frames. Rejects with the stream's failure. */
  async frame(maxBytes: number): Promise<Frame | null> {
    const head = await this.#bytes(HEAD_BYTES);
    if (head === null) return null;
    const length = head.readUInt32BE(1);
    if (length > maxBytes) throw new FrameFault(`a frame of ${length} bytes exceeds the limit of ${maxBytes}`);
    const payload = length === 0 ? Buffer.alloc(0) : await this.#bytes(length);
    if (payload === null) throw new FrameFault('the connection ended within a frame');
    return { kind: head.readUInt8(0), payload };
  }

  /** Reads the available bytes after the last frame, at least one; null at the end. */
  chunk(): Promise<Buffer | null> {
    return this.#next(() => this.#stream.read() as Buffer | null);
  }

  /** Leaves the rest of the stream to another reader. */
  release(): void {
    for (const name of EVENTS) this.#stream.off(name, this.#onEvent);
  }

  async #bytes(bytes: number): Promise<Buffer | null> {
    const read = await this.#next(() => this.#stream.read(bytes) as Buffer | null);
    // At its end a stream returns its last bytes, however few.
    return read?.byteLength === bytes ? read : null;
  }

  async #next(read: () => Buffer | null): Promise<Buffer | null> {
    const stream = this.#stream;
    for (;;) {
      const bytes = read();
      if (bytes !== null) return bytes;
      if (stream.errored) throw stream.errored;
      if (stream.readableEnded || stream.destroyed) return null;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  readonly #onEvent = (): void => {
    this.#wake?.();
    this.#wake = null;
  };
}

const EVENTS = ['readable', 'end', 'close', 'error'] as const;
