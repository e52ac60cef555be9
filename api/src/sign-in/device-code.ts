// The two codes of a device that asks to be let in: the one that it keeps, signed so that who reads
// the database cannot use what stands there, and the short one that a person types.
import { createHmac, timingSafeEqual } from 'node:crypto';

const MAC_BYTES = 32;
const USER_CODE_CHARACTERS = 8;
const LONGEST_TYPED = 64;

/** What a device is given: the stored code with its signature. */
export function sealDeviceCode(key: Buffer, stored: string): string {
  return `${stored}.${macOf(key, stored).toString('base64url')}`;
}

/** The stored code in what a device sent; null when the signature is not ours. */
export function openDeviceCode(key: Buffer, sent: string): string | null {
  const dot = sent.lastIndexOf('.');
  if (dot === -1) return null;
  const stored = sent.slice(0, dot);
  const mac = Buffer.from(sent.slice(dot + 1), 'base64url');
  return mac.byteLength === MAC_BYTES && timingSafeEqual(mac, macOf(key, stored)) ? stored : null;
}

/** A user code as it is shown: `ABCD-EFGH`. */
export function shownUserCode(stored: string): string {
  return `${stored.slice(0, USER_CODE_CHARACTERS / 2)}-${stored.slice(USER_CODE_CHARACTERS / 2)}`;
}

/**
 * A user code as it is stored, from what a person typed: any case, with whatever between the
 * characters. Null when it cannot be one.
 */
export function storedUserCode(typed: string): string | null {
  if (typed.length > LONGEST_TYPED) return null;
  const code = typed.replaceAll(/[^0-9A-Za-z]/g, '').toUpperCase();
  return code.length === USER_CODE_CHARACTERS ? code : null;
}

function macOf(key: Buffer, stored: string): Buffer {
  return createHmac('sha256', key).update(stored).digest();
}
