// Gathers the bytes of a body in a single buffer. The peer chooses the chunk sizes, and keeping a
// one-byte chunk costs a hundred bytes and the network buffer behind it. So every chunk is copied,
// and none is kept.

const FIRST_BYTES = 16_384;

export class GatheredBytes {
  #buffer: Buffer = Buffer.alloc(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  add(piece: Buffer): void {
    const length = this.#length + piece.length;
    if (length > this.#buffer.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(FIRST_BYTES, length, 2 * this.#buffer.length));
      this.#buffer.copy(larger, 0, 0, this.#length);
      this.#buffer = larger;
    }
    piece.copy(this.#buffer, this.#length);
    this.#length = length;
  }

  /** All bytes added so far, without a copy. */
  whole(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }
}
