// Tokens of file links: the terms of a link, sealed under the installation's secret key. Nothing is
// stored, and the holder of a URL learns nothing from it. Forms and seals only: the database
// decides whether the creator may still share the file.
import { openText, sealText, UnsealError } from '../context/sealed.ts';
import type { DerivedKeys } from '../context/secret-key.ts';

/** Owner of the sealed text: a link of another kind does not open. */
const OWNER = 'file-link';
/** No field can hold it. */
const SEPARATOR = '\0';
const FIELDS = 10;

/** Terms of a link. */
export interface FileLinkTerms {
  id: string;
  sandboxId: string;
  action: 'read' | 'write';
  /** Absolute. */
  path: string;
  expiresAtMs: number;
  creator: { userId: string; /** null: created in a session. */ keyId: string | null };
  /** Longest upload; null: unlimited, and for a link to read. */
  maxBytes: number | null;
  /** Whether an upload may replace a file; for a link to write. */
  overwrite: boolean;
  /** Name of the download; null: the last segment of the path, and for a link to write. */
  fileName: string | null;
}

/** At most 7.2 KB: the longest path and file name fit into the head of a request. */
export function fileLinkToken(keys: DerivedKeys, terms: FileLinkTerms): string {
  const { id, sandboxId, action, path, expiresAtMs, creator, maxBytes, overwrite, fileName } = terms;
  const text = [
    id,
    sandboxId,
    action,
    expiresAtMs,
    creator.userId,
    creator.keyId ?? '',
    maxBytes ?? '',
    overwrite ? '1' : '0',
    fileName ?? '',
    path,
  ].join(SEPARATOR);
  return sealText(keys, OWNER, text).toString('base64url');
}

/** null unless sealed with one of the keys, and unaltered. Does not check the expiry. */
export function readFileLink(keys: DerivedKeys, token: string): FileLinkTerms | null {
  const sealed = Buffer.from(token, 'base64url');
  // Decoding is lenient: only one text stands for a link.
  if (sealed.toString('base64url') !== token) return null;
  let text: string;
  try {
    text = openText(keys, OWNER, sealed);
  } catch (error) {
    if (error instanceof UnsealError) return null;
    throw error;
  }
  const fields = text.split(SEPARATOR);
  const [id, sandboxId, action, expiry, userId, keyId, maxBytes, overwrite, fileName, path] = fields;
  if (fields.length !== FIELDS || id === undefined || sandboxId === undefined || userId === undefined) return null;
  if (path === undefined || (action !== 'read' && action !== 'write')) return null;
  return {
    id,
    sandboxId,
    action,
    path,
    expiresAtMs: Number(expiry),
    creator: { userId, keyId: orNull(keyId) },
    maxBytes: maxBytes === '' ? null : Number(maxBytes),
    overwrite: overwrite === '1',
    fileName: orNull(fileName),
  };
}

function orNull(text: string | undefined): string | null {
  return text === undefined || text === '' ? null : text;
}
