// The form of an API key's token: `brt_` + 32 random base62 characters + 6 base62 characters of CRC-32 over all before them.
// The checksum tells a mistyped or cut token, and lets leak scanners know one, without a database; it proves nothing.
import { createHash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

const PREFIX = 'brt_';
const RANDOM_CHARACTERS = 32;
const CHECKSUM_CHARACTERS = 6;
const SHOWN_CHARACTERS = 10;
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const FORM = new RegExp(`^${PREFIX}[0-9A-Za-z]{${RANDOM_CHARACTERS + CHECKSUM_CHARACTERS}}$`);

/** A new token: 190 random bits. */
export function newToken(): string {
  let random = '';
  while (random.length < RANDOM_CHARACTERS) {
    for (const byte of randomBytes(RANDOM_CHARACTERS)) {
      // 248 = 4 * 62: bytes above it would favour the first characters.
      if (byte < 248 && random.length < RANDOM_CHARACTERS) random += BASE62[byte % 62];
    }
  }
  return PREFIX + random + checksum(PREFIX + random);
}

/** Whether the text has the form of a token and the checksum fits. */
export function isToken(text: string): boolean {
  return FORM.test(text) && text.slice(-CHECKSUM_CHARACTERS) === checksum(text.slice(0, -CHECKSUM_CHARACTERS));
}

/** What is stored of a token. A fast hash is enough for 190 random bits. */
export function tokenSha256(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** The part of a token that is kept and shown, to tell keys apart. */
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
