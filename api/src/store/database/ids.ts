// The only generator of ids: a type prefix and 120 random bits in lowercase base32. For bearer
// tokens see services/access/bearer-token.ts.
import { createHash, randomBytes } from 'node:crypto';

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567';
const RANDOM_BYTES = 15;

const ID_PREFIXES = {
  user: 'usr_',
  org: 'org_',
  project: 'prj_',
  sandbox: 'sbx_',
  apiKey: 'key_',
  sessionToken: 'ses_',
  agentToken: 'agt_',
  invitation: 'inv_',
  oneTimeLink: 'lnk_',
  /** Rows of the sign-in library except users. */
  signIn: 'sgn_',
  activity: 'act_',
  usageInterval: 'use_',
  metricsSample: 'smp_',
  previewLink: 'prv_',
  fileLink: 'fln_',
  domain: 'dom_',
  agentSession: 'ags_',
  agentTurn: 'trn_',
  process: 'prc_',
} as const;
type IdKind = keyof typeof ID_PREFIXES;

/** A new id, e.g. `sbx_` + 24 characters of a-z2-7. */
export function newId(kind: IdKind): string {
  return idOf(kind, randomBytes(RANDOM_BYTES));
}

/** The same id for the same text. */
export function idOfHash(kind: IdKind, text: string): string {
  return idOf(kind, createHash('sha256').update(text).digest().subarray(0, RANDOM_BYTES));
}

function idOf(kind: IdKind, bytes: Uint8Array): string {
  let text = '';
  let buffered = 0;
  let bits = 0;
  for (const byte of bytes) {
    buffered = (buffered << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += ALPHABET[(buffered >> bits) & 31];
    }
    buffered &= (1 << bits) - 1;
  }
  return ID_PREFIXES[kind] + text;
}

/**
 * True if the text can be an id of the kind. Other text is not worth a query, and may hold bytes
 * that Postgres rejects, such as NUL.
 */
export function isId(kind: IdKind, text: string): boolean {
  return text.startsWith(ID_PREFIXES[kind]) && /^[a-z]{3}_[a-z2-7]{24}$/.test(text);
}
