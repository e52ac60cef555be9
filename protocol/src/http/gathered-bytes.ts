// Bytes of a body, put together as they come. A peer decides into how many pieces its body is cut,
// and each piece that is kept costs a hundred times its one byte and the network buffer that it is
// in: so the bytes are copied into one buffer, and no piece is kept.

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

  /** All bytes added so far; not a copy. */
  whole(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }
}
