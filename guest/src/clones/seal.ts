// Seals the credentials of a clone, so that they pass through the guest daemon unread. The host
// seals them to a key held by the keeper process of this one clone alone. The host daemon imports
// this file too: it may import only Node's modules.
import {
  createCipheriv,
  createDecipheriv,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
} from 'node:crypto';

export interface CloneSecret {
  username: string;
  token: string;
}

/**
 * All base64. `key`: the keeper's public key; `sender`: the sender's public key, for this box
 * alone; `box`: ciphertext followed by its tag.
 */
export interface SealedSecret {
  key: string;
  sender: string;
  box: string;
}

const CIPHER = 'aes-256-gcm';
const TAG_BYTES = 16;
/** A key seals a single box, so a constant nonce is safe. */
const NONCE = Buffer.alloc(12);

/** Throws for an invalid key. */
export function sealSecret(key: string, { username, token }: CloneSecret): SealedSecret {
  const { publicKey, privateKey } = generateKeyPairSync('x25519');
  const sender = textOf(publicKey);
  const cipher = createCipheriv(CIPHER, agreedKey(privateKey, keyOf(key), [key, sender]), NONCE);
  const sealed = Buffer.concat([
    cipher.update(JSON.stringify({ username, token }), 'utf8'),
    cipher.final(),
    cipher.getAuthTag(),
  ]);
  return { key, sender, box: sealed.toString('base64') };
}

/** Returns a new key and a function that opens secrets sealed to it; throws for others. */
export function newSecretKey(): { key: string; open: (sealed: SealedSecret) => CloneSecret } {
  const { publicKey, privateKey } = generateKeyPairSync('x25519');
  const key = textOf(publicKey);
  return {
    key,
    open: ({ sender, box }) => {
      const bytes = Buffer.from(box, 'base64');
      const decipher = createDecipheriv(CIPHER, agreedKey(privateKey, keyOf(sender), [key, sender]), NONCE, {
        authTagLength: TAG_BYTES,
      });
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
      const text = Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()]).toString('utf8');
      return JSON.parse(text) as CloneSecret;
    },
  };
}

function agreedKey(privateKey: KeyObject, publicKey: KeyObject, parties: readonly string[]): Uint8Array {
  const agreed = diffieHellman({ privateKey, publicKey });
  return new Uint8Array(hkdfSync('sha256', agreed, '', `berth clone credentials ${parties.join(' ')}`, 32));
}

function textOf(key: KeyObject): string {
  return key.export({ format: 'der', type: 'spki' }).toString('base64');
}

function keyOf(text: string): KeyObject {
  const key = createPublicKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'spki' });
  if (key.asymmetricKeyType !== 'x25519') throw new Error('the key is not one of x25519');

  return key;
}
