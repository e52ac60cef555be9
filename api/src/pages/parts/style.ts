// The style sheet. Its path contains the content's hash, so browsers can cache it and still fetch a
// new one at once.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export const STYLE = readFileSync(new URL('pages.css', import.meta.url), 'utf8');
export const STYLE_PATH = `/pages.css?v=${createHash('sha256').update(STYLE).digest('base64url').slice(0, 12)}`;
