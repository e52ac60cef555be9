// Seals text for storage: AES-256-GCM under a key derived from the installation's secret keys
// (secret-key.ts). Callers choose the purpose.
//
//   sealed: version (1 byte) | key id (4 bytes) | nonce (12 random bytes) | encrypted UTF-8 text |
//           tag (16 bytes)
//
// Version 1, of earlier releases, has no key id: every key is tried. With random nonces, a key is
// good for 2^32 seals.
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { KEY_ID_BYTES, type DerivedKeys } from './secret-key.ts';

const ALGORITHM = 'aes-256-gcm';
const VERSION = 2;
const VERSION_WITHOUT_ID = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** A sealed value does not open. The cause is withheld from whoever altered the value. */
export class UnsealError extends Error {
  override readonly name = 'UnsealError';

  constructor(owner: string, why = DOES_NOT_OPEN, options?: ErrorOptions) {
    super(`cannot decrypt a secret of ${owner}: ${why}`, options);
  }
}

const DOES_NOT_OPEN = 'it was altered, or encrypted for another owner or with another secret key';

/** Seals text for an owner. Presenting the value as another owner's does not open it. */
export function sealText([{ id, key }]: DerivedKeys, owner: string, text: string): Buffer {
  // UTF-8 would replace lone surrogates.
  if (!text.isWellFormed()) throw new TypeError('text with lone surrogates cannot be encrypted');
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(owner));
  return Buffer.concat([sealedPrefix(id), nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
}

/** First bytes of every value sealed with the key: version and key id. */
export function sealedPrefix(id: Buffer): Buffer {
  return Buffer.concat([Buffer.of(VERSION), id]);
}

/** Opens text sealed for the owner with one of the keys. Throws {@link UnsealError}. */
export function openText(keys: DerivedKeys, owner: string, sealed: Buffer): string {
  const hasId = sealed[0] === VERSION;
  const headBytes = 1 + (hasId ? KEY_ID_BYTES : 0) + NONCE_BYTES;
  if ((!hasId && sealed[0] !== VERSION_WITHOUT_ID) || sealed.length < headBytes + TAG_BYTES)
    throw new UnsealError(owner);
  const id = sealed.subarray(1, 1 + KEY_ID_BYTES);
  const fitting = hasId ? keys.filter((key) => key.id.equals(id)) : keys;
  if (fitting.length === 0) {
    throw new UnsealError(
      owner,
      `the secret key has no line with the id ${id.toString('hex')}. Add that key below the current one`,
    );
  }

  let cause: unknown;
  for (const { key } of fitting) {
    try {
      return open(key, owner, sealed, headBytes);
    } catch (error) {
      cause = error;
    }
  }
  throw new UnsealError(owner, DOES_NOT_OPEN, { cause });
}

function open(key: Buffer, owner: string, sealed: Buffer, headBytes: number): string {
  const textEnd = sealed.length - TAG_BYTES;
  const decipher = createDecipheriv(ALGORITHM, key, sealed.subarray(headBytes - NONCE_BYTES, headBytes), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(Buffer.from(owner));
  decipher.setAuthTag(sealed.subarray(textEnd));
  const text = decipher.update(sealed.subarray(headBytes, textEnd));
  return Buffer.concat([text, decipher.final()]).toString();
}
