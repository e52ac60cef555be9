// Seals text for storage: AES-256-GCM under a key derived from the installation's secret key
// (secret-key.ts). Callers choose the purpose.
//
//   sealed: version (1 byte) | nonce (12 random bytes) | encrypted UTF-8 text | tag (16 bytes)
//
// The leading version allows for other keys and formats. With random nonces, a key is good for 2^32
// seals.
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const ALGORITHM = 'aes-256-gcm';
const VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 1 + NONCE_BYTES;

/** A sealed value does not open. The cause is withheld from whoever altered the value. */
export class UnsealError extends Error {
  override readonly name = 'UnsealError';

  constructor(owner: string, options?: ErrorOptions) {
    super(
      `cannot decrypt a secret of ${owner}: ` +
        'it was altered, or encrypted for another owner or with another key than BERTH_SECRET_KEY_FILE',
      options,
    );
  }
}

/** Seals text for an owner. Presenting the value as another owner's does not open it. */
export function sealText(key: Buffer, owner: string, text: string): Buffer {
  // UTF-8 would replace lone surrogates.
  if (!text.isWellFormed()) throw new TypeError('text with lone surrogates cannot be encrypted');
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(owner));
  return Buffer.concat([Buffer.of(VERSION), nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
}

/** Opens text sealed for the owner with the key. Throws {@link UnsealError}. */
export function openText(key: Buffer, owner: string, sealed: Buffer): string {
  if (sealed[0] !== VERSION || sealed.length < HEAD_BYTES + TAG_BYTES) throw new UnsealError(owner);
  const textEnd = sealed.length - TAG_BYTES;
  const decipher = createDecipheriv(ALGORITHM, key, sealed.subarray(1, HEAD_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(owner));
  decipher.setAuthTag(sealed.subarray(textEnd));
  const text = decipher.update(sealed.subarray(HEAD_BYTES, textEnd));
  try {
    return Buffer.concat([text, decipher.final()]).toString();
  } catch (error) {
    throw new UnsealError(owner, { cause: error });
  }
}
