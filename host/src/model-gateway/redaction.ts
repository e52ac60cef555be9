// Removes the model key from a response: a provider may repeat it, and the guest must not see it.

/** Shorter keys are no secrets, and would occur in texts by chance. */
const MIN_CHARACTERS = 16;

/** A form of the key, with as many asterisks. */
interface Form {
  key: Buffer;
  mask: Buffer;
}

/** Replaces the key in headers, and in the chunks of one body. Lengths stay the same. */
export class Redaction {
  readonly #forms: readonly Form[];
  /** Bytes at the end of the last chunk that may begin the key. */
  #held: Buffer = Buffer.alloc(0);

  constructor(key: string) {
    this.#forms = key.length < MIN_CHARACTERS ? [] : formsOf(key);
  }

  header(value: string): string {
    return this.#forms.reduce((left, { key, mask }) => left.replaceAll(String(key), String(mask)), value);
  }

  /** Returns the bytes that can be sent: all, except an end that may begin the key. */
  chunk(bytes: Buffer): Buffer {
    const all = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    let end = all.length;
    for (const { key, mask } of this.#forms) {
      let free = 0;
      for (let at = all.indexOf(key); at >= 0; at = all.indexOf(key, free)) {
        mask.copy(all, at);
        free = at + key.length;
      }
      end = Math.min(end, heldFrom(all, Math.max(free, all.length - key.length + 1), key));
    }
    this.#held = all.subarray(end);
    return all.subarray(0, end);
  }

  /** Returns the held bytes, at the end of the body. */
  end(): Buffer {
    return this.#held;
  }
}

/**
 * The key as it is, escaped for a URL, and in base64 of a text that contains it. There it has one
 * of three forms, by the bytes before it; they exclude characters that depend on its neighbours.
 */
function formsOf(key: string): Form[] {
  const encoded = [0, 1, 2].flatMap((before) => {
    const bits = 8 * (before + Buffer.byteLength(key));
    const text = Buffer.concat([Buffer.alloc(before), Buffer.from(key)]).toString('base64');
    const own = text.slice(Math.ceil((8 * before) / 6), Math.floor(bits / 6));
    return [own, own.replaceAll('+', '-').replaceAll('/', '_')];
  });
  return [...new Set([key, encodeURIComponent(key), ...encoded])].map((form) => {
    return { key: Buffer.from(form), mask: Buffer.alloc(Buffer.byteLength(form), '*') };
  });
}

/** Index of the first end of the bytes that begins the key; their length without one. */
function heldFrom(bytes: Buffer, from: number, key: Buffer): number {
  for (let at = bytes.indexOf(key[0] as number, from); at >= 0; at = bytes.indexOf(key[0] as number, at + 1))
    if (key.subarray(0, bytes.length - at).equals(bytes.subarray(at))) return at;
  return bytes.length;
}
