// Encrypts the files of a snapshot with AES-256-CTR, under keys derived from the VM's disk key and
// a random salt of the snapshot. The manifest has the hash of each encrypted file and is
// authenticated with the disk key, so an altered snapshot is detected before it runs.
import { createCipheriv, createHmac, hkdfSync } from 'node:crypto';

const BLOCK_BYTES = 16;

/** Key of one file of one snapshot: never used for anything else, so the counter starts at zero. */
export function fileKey(diskKey: string, salt: string, file: 'memory' | 'devices'): Uint8Array {
  return derive(diskKey, Buffer.from(salt, 'hex'), `berth snapshot ${file}`);
}

/**
 * Encrypts or decrypts the next bytes of a file, from `offset` on.
 * @param offset a multiple of 16
 */
export function fileCipher(key: Uint8Array, offset: number): (bytes: Uint8Array) => Buffer {
  const counter = Buffer.alloc(BLOCK_BYTES);
  counter.writeBigUInt64BE(BigInt(offset / BLOCK_BYTES), BLOCK_BYTES - 8);
  const cipher = createCipheriv('aes-256-ctr', key, counter);
  return (bytes) => cipher.update(bytes);
}

/** Authenticates the manifest of an encrypted snapshot. */
export function manifestMac(diskKey: string, body: string): string {
  return createHmac('sha256', derive(diskKey, Buffer.alloc(0), 'berth snapshot manifest'))
    .update(body)
    .digest('hex');
}

function derive(diskKey: string, salt: Buffer, use: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', Buffer.from(diskKey, 'base64url'), salt, use, 32));
}
