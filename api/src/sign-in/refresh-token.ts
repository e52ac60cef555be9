// Refresh tokens of clients: the token of the sign-in session and a generation, signed. A refresh
// raises the session's generation, so a signed token of an earlier one has been spent. That needs
// no row per token.
import type { DerivedKeys } from '../services/context/secret-key.ts';
import { openDeviceCode, sealDeviceCode } from './device-code.ts';

const FORM = /^([0-9A-Za-z_-]{1,128})\.(0|[1-9]\d{0,8})$/;
const LONGEST = 256;

interface RefreshToken {
  /** Id of the sign-in session. */
  token: string;
  generation: number;
}

export function sealRefreshToken(keys: DerivedKeys, { token, generation }: RefreshToken): string {
  return sealDeviceCode(keys, `${token}.${generation}`);
}

/** Null for text without a valid signature. */
export function openRefreshToken(keys: DerivedKeys, sent: string): RefreshToken | null {
  const [, token, generation] = FORM.exec((sent.length > LONGEST ? null : openDeviceCode(keys, sent)) ?? '') ?? [];
  return token === undefined ? null : { token, generation: Number(generation) };
}
