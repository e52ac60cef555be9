// The bearer tokens that the host daemon accepts: those of the token file, which is read again, so
// that a rotation needs no restart. Keeps hashes only.
import { createHash, timingSafeEqual } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';

/** Bounds how long a removed token still works. */
const REREAD_MS = 1_000;

export class HostTokens {
  #hashes: readonly Buffer[];

  constructor(tokens: readonly string[]) {
    this.#hashes = tokens.map(sha256);
  }

  admits(token: string): boolean {
    const hash = sha256(token);
    return this.#hashes.some((accepted) => timingSafeEqual(hash, accepted));
  }

  /** Returns true if the tokens differ from the last ones. */
  replaceWith(tokens: readonly string[]): boolean {
    const hashes = tokens.map(sha256);
    const changed = !Buffer.concat(hashes).equals(Buffer.concat(this.#hashes));
    this.#hashes = hashes;
    return changed;
  }

  /**
   * Takes the tokens that `read` returns, again and again until the signal aborts. Keeps the last
   * ones while they cannot be read.
   */
  async follow(read: () => Promise<readonly string[]>, signal: AbortSignal, log: Logger): Promise<void> {
    let failing = false;
    while (!signal.aborted) {
      try {
        const tokens = await read();
        if (this.replaceWith(tokens)) log.info({ tokens: tokens.length }, 'loaded changed host tokens');
        failing = false;
      } catch (error) {
        if (!failing) log.error({ err: error }, 'cannot read the token file again: the last tokens stay valid');
        failing = true;
      }
      await delay(REREAD_MS, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
