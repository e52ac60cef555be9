// The installation's secret key, from the configuration, and the keys that are derived from it, one
// for each purpose: what is known of one tells nothing of the others. Keep it: without it sealed
// values cannot be opened, and every login and link ends.
import { hkdfSync } from 'node:crypto';

/** Purposes are part of the derivation: a name that changes is another key. */
export type KeyPurpose = 'sign-in' | 'device-code' | 'throttle' | 'repo-credentials' | 'preview-link';

export class SecretKey {
  readonly #master: Buffer;

  /** @param master at least 32 random bytes */
  constructor(master: Buffer) {
    if (master.length < 32) throw new Error(`the secret key must be at least 32 bytes long, not ${master.length}`);
    this.#master = master;
  }

  /** 32 bytes for the purpose alone. */
  derive(purpose: KeyPurpose): Buffer {
    return Buffer.from(hkdfSync('sha256', this.#master, Buffer.alloc(0), `berth ${purpose}`, 32));
  }

  /** Never shown, also not by a log that is given an object with it inside. */
  toJSON(): string {
    return '[secret key]';
  }
}
