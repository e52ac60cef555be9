// The two codes of a device that requests sign-in. The device code is signed, so that a reader of
// the database cannot use the stored code. The user code is short, for a person to type.
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { DerivedKeys } from '../services/context/secret-key.ts';

const MAC_BYTES = 32;
const USER_CODE_CHARACTERS = 8;
const LONGEST_TYPED = 64;

/** The code given to a device: the stored code with its signature. */
export function sealDeviceCode([{ key }]: DerivedKeys, stored: string): string {
  return `${stored}.${macOf(key, stored).toString('base64url')}`;
}

/** The stored code of a device's code; null for a wrong signature. */
export function openDeviceCode(keys: DerivedKeys, sent: string): string | null {
  const dot = sent.lastIndexOf('.');
  if (dot === -1) return null;
  const stored = sent.slice(0, dot);
  const mac = Buffer.from(sent.slice(dot + 1), 'base64url');
  if (mac.byteLength !== MAC_BYTES) return null;
  return keys.some(({ key }) => timingSafeEqual(mac, macOf(key, stored))) ? stored : null;
}

/** Display form of a user code: `ABCD-EFGH`. */
export function shownUserCode(stored: string): string {
  return `${stored.slice(0, USER_CODE_CHARACTERS / 2)}-${stored.slice(USER_CODE_CHARACTERS / 2)}`;
}

/** Stored form of a typed user code: any case, with any separators. null if it cannot be a code. */
export function storedUserCode(typed: string): string | null {
  if (typed.length > LONGEST_TYPED) return null;
  const code = typed.replaceAll(/[^0-9A-Za-z]/g, '').toUpperCase();
  return code.length === USER_CODE_CHARACTERS ? code : null;
}

function macOf(key: Buffer, stored: string): Buffer {
  return createHmac('sha256', key).update(stored).digest();
}
