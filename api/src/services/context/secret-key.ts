// The installation's configured secret key, and the keys derived from it. Each purpose has an
// independent key. Losing the secret key makes sealed values unreadable and invalidates every
// sign-in session and link.
import { hkdfSync } from 'node:crypto';

/** Purposes are part of the derivation: renaming one changes its key. */
type KeyPurpose = 'sign-in' | 'device-code' | 'factors' | 'throttle' | 'repo-credentials' | 'preview-link';

export class SecretKey {
  readonly #master: Buffer;

  /** @param master at least 32 random bytes */
  constructor(master: Buffer) {
    if (master.length < 32) throw new Error(`the secret key must be at least 32 bytes long, not ${master.length}`);
    this.#master = master;
  }

  /** The purpose's key, 32 bytes. */
  derive(purpose: KeyPurpose): Buffer {
    return Buffer.from(hkdfSync('sha256', this.#master, Buffer.alloc(0), `berth ${purpose}`, 32));
  }

  /** Hides the key from logs of an object that contains it. */
  toJSON(): string {
    return '[secret key]';
  }
}
