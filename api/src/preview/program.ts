// Credentials in headers, for programs. No page of another origin can make a browser send them
// without asking the preview first (CORS preflight), and the preview never agrees.
import type { IncomingHttpHeaders } from 'node:http';
import { PREVIEW_HEADERS } from '@berth/contract/previews/previews.ts';
import { tokenKind, tokenSha256 } from '../services/access/bearer-token.ts';

interface ProgramCredential {
  /** Token of a link. */
  token: string | null;
  /** Hash of an API key, in base64url. */
  apiKey: string | null;
  /** Header that the app must not receive. */
  header: typeof PREVIEW_HEADERS.token | 'authorization';
}

/**
 * The credential in a header, null for none. `Authorization` belongs to the app if the request has
 * another credential (`hasOther`).
 */
export function programCredential(headers: IncomingHttpHeaders, hasOther: boolean): ProgramCredential | null {
  const given = headers[PREVIEW_HEADERS.token];
  if (given !== undefined) {
    const apiKey = hashOfKey(String(given));
    return { token: apiKey === null ? String(given) : null, apiKey, header: PREVIEW_HEADERS.token };
  }
  const bearer = hasOther ? undefined : /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1];
  const apiKey = bearer === undefined ? null : hashOfKey(bearer);
  return apiKey === null ? null : { token: null, apiKey, header: 'authorization' };
}

function hashOfKey(text: string): string | null {
  return tokenKind(text) === 'api_key' ? tokenSha256(text).toString('base64url') : null;
}
