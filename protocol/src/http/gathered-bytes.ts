// Gathers the bytes of a body in a single buffer. The peer chooses the chunk sizes, and keeping a
// one-byte chunk costs a hundred bytes and the network buffer behind it. So every chunk is copied,
// and none is kept.

import { freeChunk } from './free-chunk.ts';

const FIRST_BYTES = 16_384;

export class GatheredBytes {
  readonly #firstBytes: number;
  #buffer: Buffer = Buffer.alloc(0);
  #length = 0;

  /** @param expectedBytes reserved with the first piece, so that no larger buffer follows */
  constructor(expectedBytes = FIRST_BYTES) {
    this.#firstBytes = Math.max(FIRST_BYTES, expectedBytes);
  }

  get length(): number {
    return this.#length;
  }

  add(piece: Buffer): void {
    this.#reserve(piece.length);
    piece.copy(this.#buffer, this.#length);
    this.#length += piece.length;
  }

  /** Adds a text of the given length in UTF-8. */
  addText(text: string, bytes: number): void {
    this.#reserve(bytes);
    this.#buffer.write(text, this.#length, 'utf8');
    this.#length += bytes;
  }

  #reserve(bytes: number): void {
    const length = this.#length + bytes;
    if (length <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#firstBytes, length, 2 * this.#buffer.length));
    this.#buffer.copy(larger, 0, 0, this.#length);
    this.#buffer = larger;
  }

  /** Decodes all bytes as UTF-8 and frees them. */
  takeText(): string {
    const text = this.whole().toString('utf8');
    freeChunk(this.#buffer);
    this.#buffer = Buffer.alloc(0);
    this.#length = 0;
    return text;
  }

  /** All bytes added so far, without a copy. */
  whole(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }
}
