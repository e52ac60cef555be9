// How a terminal goes over a raw stream: frames of a byte for the kind, four for the length (the
// highest first) and what it is about. Imports nothing: the guest daemon bundles it. What control
// frames say is in guest.ts.

export const TERMINAL_FRAME = {
  /**
   * Bytes of the terminal. Empty ones mean nothing: they keep a stream from being taken for silent.
   */
  bytes: 0,
  /** JSON. */
  control: 1,
} as const;
type TerminalFrameKind = (typeof TERMINAL_FRAME)[keyof typeof TERMINAL_FRAME];

/** Without a terminal, bytes from a command begin with the stream that they are of. */
export const COMMAND_STREAM = { stdout: 1, stderr: 2 } as const;
type CommandStream = (typeof COMMAND_STREAM)[keyof typeof COMMAND_STREAM];

/** Longest content of a frame. */
export const TERMINAL_FRAME_BYTES = 65_536;
const HEAD_BYTES = 5;

/** What came is no frame; nothing that follows can be understood. */
export class FrameFault extends Error {
  override readonly name = 'FrameFault';
}

/** As many frames of bytes as it takes. */
export function bytesFrames(content: Uint8Array): Uint8Array {
  const frames: Uint8Array[] = [];
  for (let at = 0; at === 0 || at < content.length; at += TERMINAL_FRAME_BYTES)
    frames.push(frame(TERMINAL_FRAME.bytes, content.subarray(at, at + TERMINAL_FRAME_BYTES)));

  return frames.length === 1 ? (frames[0] as Uint8Array) : Buffer.concat(frames);
}

/**
 * A frame of what a command without a terminal wrote to one of its streams: at most {@link
 * TERMINAL_FRAME_BYTES} - 1 bytes.
 */
export function outputFrame(stream: CommandStream, content: Uint8Array): Uint8Array {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + 1 + content.length);
  bytes.writeUInt8(TERMINAL_FRAME.bytes, 0);
  bytes.writeUInt32BE(1 + content.length, 1);
  bytes.writeUInt8(stream, HEAD_BYTES);
  bytes.set(content, HEAD_BYTES + 1);
  return bytes;
}

/** A control frame. */
export function controlFrame(value: unknown): Uint8Array {
  return frame(TERMINAL_FRAME.control, Buffer.from(JSON.stringify(value)));
}

function frame(kind: TerminalFrameKind, content: Uint8Array): Uint8Array {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + content.length);
  bytes.writeUInt8(kind, 0);
  bytes.writeUInt32BE(content.length, 1);
  bytes.set(content, HEAD_BYTES);
  return bytes;
}

/** Puts frames together again, however the stream cuts them. */
export class FrameReader {
  readonly #onFrame: (kind: TerminalFrameKind, content: Buffer) => void;
  #left: Buffer = Buffer.alloc(0);

  constructor(onFrame: (kind: TerminalFrameKind, content: Buffer) => void) {
    this.#onFrame = onFrame;
  }

  /** Throws {@link FrameFault}, and what `onFrame` throws. Keeps no more than one frame. */
  push(chunk: Buffer): void {
    let bytes = this.#left.length === 0 ? chunk : Buffer.concat([this.#left, chunk]);
    while (bytes.length >= HEAD_BYTES) {
      const [kind, length] = [bytes.readUInt8(0), bytes.readUInt32BE(1)];
      if (kind !== TERMINAL_FRAME.bytes && kind !== TERMINAL_FRAME.control)
        throw new FrameFault(`a frame of the unknown kind ${kind}`);

      if (length > TERMINAL_FRAME_BYTES) throw new FrameFault(`a frame of ${length} bytes`);

      if (bytes.length < HEAD_BYTES + length) break;

      const content = bytes.subarray(HEAD_BYTES, HEAD_BYTES + length);
      bytes = bytes.subarray(HEAD_BYTES + length);
      this.#onFrame(kind, content);
    }
    this.#left = bytes;
  }
}
