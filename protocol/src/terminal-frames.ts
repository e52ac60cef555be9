// Frames of a terminal on a raw stream: a byte for the kind, four for the length (big-endian), then
// the content. Imports nothing: the guest daemon bundles it. calls/connections.ts defines the
// control frames.

export const TERMINAL_FRAME = {
  /**
   * Bytes of the terminal. Empty frames have no meaning but keep a stream from counting as silent.
   */
  bytes: 0,
  control: 1,
} as const;
type TerminalFrameKind = (typeof TERMINAL_FRAME)[keyof typeof TERMINAL_FRAME];

/** Without a terminal, byte frames from a command begin with their stream. */
export const COMMAND_STREAM = { stdout: 1, stderr: 2 } as const;
type CommandStream = (typeof COMMAND_STREAM)[keyof typeof COMMAND_STREAM];

/** Limit of a frame's content. */
export const TERMINAL_FRAME_BYTES = 65_536;
const HEAD_BYTES = 5;

/** An invalid frame; nothing after it can be parsed. */
export class FrameFault extends Error {
  override readonly name = 'FrameFault';
}

/** Splits the content into as many byte frames as needed. */
export function bytesFrames(content: Uint8Array): Uint8Array {
  const frames: Uint8Array[] = [];
  for (let at = 0; at === 0 || at < content.length; at += TERMINAL_FRAME_BYTES)
    frames.push(frame(TERMINAL_FRAME.bytes, content.subarray(at, at + TERMINAL_FRAME_BYTES)));

  return frames.length === 1 ? (frames[0] as Uint8Array) : Buffer.concat(frames);
}

/**
 * A frame of output of a command without a terminal: at most {@link TERMINAL_FRAME_BYTES} - 1
 * bytes.
 */
export function outputFrame(stream: CommandStream, content: Uint8Array): Uint8Array {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + 1 + content.length);
  bytes.writeUInt8(TERMINAL_FRAME.bytes, 0);
  bytes.writeUInt32BE(1 + content.length, 1);
  bytes.writeUInt8(stream, HEAD_BYTES);
  bytes.set(content, HEAD_BYTES + 1);
  return bytes;
}

/**
 * A frame of output of a program, which names its stream if that is a pipe: at most
 * {@link TERMINAL_FRAME_BYTES} - 1 bytes.
 */
export function streamFrame(stream: 'stdout' | 'stderr' | 'output', content: Uint8Array): Uint8Array {
  return stream === 'output' ? bytesFrames(content) : outputFrame(COMMAND_STREAM[stream], content);
}

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

/** Reassembles frames from arbitrary chunks. */
export class FrameReader {
  readonly #onFrame: (kind: TerminalFrameKind, content: Buffer) => void;
  #left: Buffer = Buffer.alloc(0);

  constructor(onFrame: (kind: TerminalFrameKind, content: Buffer) => void) {
    this.#onFrame = onFrame;
  }

  /** Throws {@link FrameFault}, and errors of `onFrame`. Buffers at most one frame. */
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
