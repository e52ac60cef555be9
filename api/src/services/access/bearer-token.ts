// Format of bearer tokens: a prefix for the kind, 32 random base62 characters, and 6 base62
// characters of CRC-32 over the preceding text. The checksum detects mistyped or truncated tokens
// without a query, lets leak scanners recognise tokens, and proves nothing.
import { crc32 } from 'node:zlib';
import { hash, randomBytes } from 'node:crypto';
import type { AuthKind } from '@berth/contract/route/route.ts';

/** `brt_`: API key, `bst_`: session token, `bat_`: personal agent token. */
export const TOKEN_PREFIXES = { api_key: 'brt_', session: 'bst_', agent_token: 'bat_' } as const satisfies {
  [kind in AuthKind]: string;
};

const RANDOM_CHARACTERS = 32;
const CHECKSUM_CHARACTERS = 6;
const SHOWN_CHARACTERS = 10;
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const FORM = new RegExp(
  `^(${Object.values(TOKEN_PREFIXES).join('|')})[0-9A-Za-z]{${RANDOM_CHARACTERS + CHECKSUM_CHARACTERS}}$`,
);

/** Generates a token with 190 random bits. */
export function newToken(kind: AuthKind): string {
  let random = '';
  while (random.length < RANDOM_CHARACTERS) {
    for (const byte of randomBytes(RANDOM_CHARACTERS)) {
      // 248 = 4 * 62: larger bytes would favour the first characters.
      if (byte < 248 && random.length < RANDOM_CHARACTERS) random += BASE62[byte % 62];
    }
  }
  const text = TOKEN_PREFIXES[kind] + random;
  return text + checksum(text);
}

/** The kind of a token with a valid format and checksum; null otherwise. */
export function tokenKind(text: string): AuthKind | null {
  const prefix = FORM.exec(text)?.[1];
  if (prefix === undefined || text.slice(-CHECKSUM_CHARACTERS) !== checksum(text.slice(0, -CHECKSUM_CHARACTERS)))
    return null;
  return (Object.keys(TOKEN_PREFIXES) as AuthKind[]).find((kind) => TOKEN_PREFIXES[kind] === prefix) ?? null;
}

/** The stored hash of a token. A fast hash is enough for 190 random bits. */
export function tokenSha256(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}

/** The part of a token that is stored and shown, to tell keys apart. */
export function tokenPrefix(token: string): string {
  return token.slice(0, SHOWN_CHARACTERS);
}

function checksum(text: string): string {
  let rest = crc32(text);
  let digits = '';
  for (let index = 0; index < CHECKSUM_CHARACTERS; index += 1) {
    digits = BASE62[rest % 62] + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}
