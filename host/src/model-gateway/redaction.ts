// Removes the model key from a response: a provider may repeat it, and the guest must not see it.

/** Shorter keys are no secrets, and would occur in texts by chance. */
const MIN_CHARACTERS = 16;

/** Replaces the key in headers, and in the chunks of one body. Lengths stay the same. */
export class Redaction {
  readonly #key: Buffer | null;
  readonly #mask: Buffer;
  /** Bytes at the end of the last chunk that may begin the key. */
  #held: Buffer = Buffer.alloc(0);

  constructor(key: string) {
    this.#key = key.length < MIN_CHARACTERS ? null : Buffer.from(key);
    this.#mask = Buffer.alloc(Buffer.byteLength(key), '*');
  }

  header(value: string): string {
    return this.#key === null ? value : value.replaceAll(String(this.#key), String(this.#mask));
  }

  /** Returns the bytes that can be sent: all, except an end that may begin the key. */
  chunk(bytes: Buffer): Buffer {
    const key = this.#key;
    if (key === null) return bytes;
    const all = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    let free = 0;
    for (let at = all.indexOf(key); at >= 0; at = all.indexOf(key, free)) {
      this.#mask.copy(all, at);
      free = at + key.length;
    }
    const end = heldFrom(all, Math.max(free, all.length - key.length + 1), key);
    this.#held = all.subarray(end);
    return all.subarray(0, end);
  }

  /** Returns the held bytes, at the end of the body. */
  end(): Buffer {
    return this.#held;
  }
}

/** Index of the first end of the bytes that begins the key; their length without one. */
function heldFrom(bytes: Buffer, from: number, key: Buffer): number {
  for (let at = bytes.indexOf(key[0] as number, from); at >= 0; at = bytes.indexOf(key[0] as number, at + 1))
    if (key.subarray(0, bytes.length - at).equals(bytes.subarray(at))) return at;
  return bytes.length;
}
