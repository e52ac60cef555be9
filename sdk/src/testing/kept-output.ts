// An output of a process of the test server: its last bytes, as chunks of text where it is text.
import { PROCESS_LIMITS } from '../generated/command-limits.ts';
import type { ProcessOutputChunk } from '../generated/raw/index.ts';
import { partialCharacter } from '../transport/utf8.ts';
import { contentOf } from './files/files.ts';

interface Piece {
  offset: number;
  bytes: Uint8Array;
}

export class KeptOutput {
  readonly #keptBytes: number;
  /** The kept bytes, without gaps. */
  #pieces: Piece[] = [];
  length = 0;

  constructor(keptBytes: number) {
    this.#keptBytes = keptBytes;
  }

  write(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#pieces.push({ offset: this.length, bytes });
    this.length += bytes.length;
    const free = this.length - this.#keptBytes;
    const first = this.#pieces[0] as Piece;
    if (first.offset + first.bytes.length <= free)
      this.#pieces = this.#pieces.filter((piece) => piece.offset + piece.bytes.length > free);
  }

  /** The chunk behind an offset, and the offset behind the chunk; undefined if there is none. */
  read(from: number): { chunk: Omit<ProcessOutputChunk, 'stream' | 'cursor'>; next: number } | undefined {
    const offset = Math.max(from, this.#pieces[0]?.offset ?? 0);
    const bytes = this.#bytes(offset);
    if (bytes.length === 0) return undefined;
    const lostBytes = offset - from;
    // The beginning of a character at the end is left for the next chunk, unless it is all.
    const whole = bytes.subarray(0, bytes.length - partialCharacter(bytes));
    const text = contentOf(whole.length === 0 ? bytes : whole);
    const { content: data, encoding } = text.encoding === 'utf8' ? text : contentOf(bytes);
    const next = offset + (text.encoding === 'utf8' && whole.length > 0 ? whole.length : bytes.length);
    return { chunk: { offset, lostBytes, data, encoding }, next };
  }

  #bytes(offset: number): Uint8Array {
    const found = new Uint8Array(Math.max(0, Math.min(PROCESS_LIMITS.readBytes, this.length - offset)));
    for (const piece of this.#pieces) {
      const from = Math.max(0, offset - piece.offset);
      const at = piece.offset + from - offset;
      if (at >= found.length) break;
      found.set(piece.bytes.subarray(from, from + found.length - at), at);
    }
    return found;
  }
}
