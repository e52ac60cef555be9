// The last bytes of a stream, in bounded memory, as text without a partial first character.
import { EXEC_OUTPUT_BYTES } from '@berth/protocol/guest-limits.ts';

const FIRST_BYTES = 4_096;

/** Keeps the last `keptBytes` bytes pushed. */
export class Tail {
  readonly #keptBytes: number;
  /** Grows to twice `keptBytes`, then its second half moves to the front: one move per byte. */
  #buffer = Buffer.alloc(0);
  #used = 0;
  #truncated = false;

  constructor(keptBytes: number = EXEC_OUTPUT_BYTES) {
    this.#keptBytes = keptBytes;
  }

  /** True if bytes were dropped from the front. */
  get truncated(): boolean {
    return this.#truncated || this.#used > this.#keptBytes;
  }

  push(chunk: Buffer): void {
    let added = chunk;
    if (added.length >= this.#keptBytes) {
      this.#truncated ||= this.#used > 0 || added.length > this.#keptBytes;
      this.#used = 0;
      added = added.subarray(added.length - this.#keptBytes);
    }
    this.#dropOldest(added.length);
    added.copy(this.#buffer, this.#used);
    this.#used += added.length;
  }

  /** As text; invalid UTF-8 becomes U+FFFD. A partial character at the front is dropped. */
  text(): string {
    let start = Math.max(0, this.#used - this.#keptBytes);
    if (this.truncated) {
      // A UTF-8 character has at most four bytes, so at most three continuation bytes (10xxxxxx)
      // can belong to a character before the cut.
      const limit = Math.min(start + 3, this.#used);
      while (start < limit && ((this.#buffer[start] ?? 0) & 0xc0) === 0x80) start += 1;
    }
    return this.#buffer.toString('utf8', start, this.#used);
  }

  #dropOldest(added: number): void {
    if (this.#used + added <= this.#buffer.length) return;

    const full = 2 * this.#keptBytes;
    if (this.#buffer.length < full) {
      const size = Math.min(full, Math.max(FIRST_BYTES, 2 * this.#buffer.length, this.#used + added));
      const larger = Buffer.allocUnsafeSlow(size);
      this.#buffer.copy(larger, 0, 0, this.#used);
      this.#buffer = larger;
    }
    if (this.#used + added > this.#buffer.length) {
      const kept = Math.min(this.#used, this.#keptBytes);
      this.#buffer.copyWithin(0, this.#used - kept, this.#used);
      this.#truncated ||= kept < this.#used;
      this.#used = kept;
    }
  }
}
