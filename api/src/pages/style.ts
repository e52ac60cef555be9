// The one style sheet. Its address has the content's hash in it, so that browsers may keep it and
// still see a new one at once.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export const STYLE = readFileSync(new URL('pages.css', import.meta.url), 'utf8');
export const STYLE_PATH = `/pages.css?v=${createHash('sha256').update(STYLE).digest('base64url').slice(0, 12)}`;
