// Seals small texts of a VM's folder with AES-256-GCM, under a key derived from the VM's data key.
// Files of earlier releases hold the text itself.
//
//   "sealed-1:" | base64url of: nonce (12 random bytes) | encrypted UTF-8 text | tag (16 bytes)
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

const ALGORITHM = 'aes-256-gcm';
const PREFIX = 'sealed-1:';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** @param owner names the VM and the kind of text; another owner's text does not open */
export function seal(dataKey: string, owner: string, text: string): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, keyOf(dataKey), nonce).setAAD(Buffer.from(owner));
  const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  return `${PREFIX}${sealed.toString('base64url')}`;
}

export function isSealed(text: string): boolean {
  return text.startsWith(PREFIX);
}

/** Throws if the text was altered, or sealed for another owner or with another key. */
export function open(dataKey: string, owner: string, text: string): string {
  const sealed = Buffer.from(text.slice(PREFIX.length), 'base64url');
  const end = sealed.length - TAG_BYTES;
  if (!isSealed(text) || end < NONCE_BYTES) throw new Error('a sealed text is damaged');

  const decipher = createDecipheriv(ALGORITHM, keyOf(dataKey), sealed.subarray(0, NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(Buffer.from(owner)).setAuthTag(sealed.subarray(end));
  return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, end)), decipher.final()]).toString();
}

function keyOf(dataKey: string): Buffer {
  return Buffer.from(hkdfSync('sha256', Buffer.from(dataKey, 'base64url'), Buffer.alloc(0), 'berth vm-folder', 32));
}
