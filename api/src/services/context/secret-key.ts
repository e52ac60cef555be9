// The installation's secret keys, and the keys derived from them: the current one seals and signs,
// the former ones only open and verify. Each purpose has independent keys. Losing a secret key
// makes the values sealed with it unreadable and invalidates its sign-in sessions and links.
import { hkdfSync } from 'node:crypto';

/** Purposes are part of the derivation: renaming one changes its key. */
type KeyPurpose =
  | 'sign-in'
  | 'device-code'
  | 'refresh-token'
  | 'factors'
  | 'throttle'
  | 'repo-credentials'
  | 'agent-credentials'
  | 'agent-messages'
  | 'sandbox-data'
  | 'sandbox-variables'
  | 'preview-link'
  | 'file-link';

/** A key for one purpose. `id` names its secret key and discloses nothing about it. */
export interface DerivedKey {
  /** {@link KEY_ID_BYTES} long. */
  id: Buffer;
  /** 32 bytes. */
  key: Buffer;
}

/** The current key first, then the former ones. */
export type DerivedKeys = readonly [DerivedKey, ...DerivedKey[]];

export const KEY_ID_BYTES = 4;
const SHORTEST_BYTES = 32;

export class SecretKey {
  #masters: readonly [Buffer, ...Buffer[]];
  /** Kept until the keys change, so that equal keys are the same object. */
  readonly #derived = new Map<KeyPurpose, DerivedKeys>();

  /** @param current at least 32 random bytes, like each of the former ones */
  constructor(current: Buffer, ...former: Buffer[]) {
    this.#masters = [current, ...former];
    for (const { length } of this.#masters) {
      if (length < SHORTEST_BYTES)
        throw new Error(`a secret key must be at least ${SHORTEST_BYTES} bytes long on one line, not ${length}`);
    }
    if (new Set(this.ids).size < this.#masters.length) throw new Error('two secret keys have the same id');
  }

  /** Ids of the secret keys, the current one first. */
  get ids(): string[] {
    return this.#masters.map((master) => keyId(master).toString('hex'));
  }

  /** Takes the keys of another value, such as the re-read file. Returns true if they differ. */
  replaceWith(other: SecretKey): boolean {
    if (other.ids.join() === this.ids.join()) return false;
    this.#masters = other.#masters;
    this.#derived.clear();
    return true;
  }

  /** The purpose's keys. The same object until the keys change. */
  keysFor(purpose: KeyPurpose): DerivedKeys {
    const known = this.#derived.get(purpose);
    if (known !== undefined) return known;
    const derive = (master: Buffer): DerivedKey => ({ id: keyId(master), key: expand(master, purpose, 32) });
    const [current, ...former] = this.#masters;
    const keys: DerivedKeys = [derive(current), ...former.map(derive)];
    this.#derived.set(purpose, keys);
    return keys;
  }

  /** The purpose's current key, 32 bytes. */
  derive(purpose: KeyPurpose): Buffer {
    return this.keysFor(purpose)[0].key;
  }

  /** Hides the keys from logs of an object that contains them. */
  toJSON(): string {
    return '[secret key]';
  }
}

function keyId(master: Buffer): Buffer {
  return expand(master, 'key-id', KEY_ID_BYTES);
}

function expand(master: Buffer, label: string, bytes: number): Buffer {
  return Buffer.from(hkdfSync('sha256', master, Buffer.alloc(0), `berth ${label}`, bytes));
}
