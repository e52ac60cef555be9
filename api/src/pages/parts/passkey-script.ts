// The only script of the pages: the library for passkeys with the code that runs its forms. Pages
// with a passkey form load it; the policy of the others allows no script.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

/** The package exports no path to its file for browsers. */
const LIBRARY = join(
  createRequire(import.meta.url).resolve('@simplewebauthn/browser'),
  '../../dist/bundle/index.umd.min.js',
);

export const PASSKEY_SCRIPT = [
  readFileSync(LIBRARY, 'utf8'),
  readFileSync(new URL('passkeys.js', import.meta.url), 'utf8'),
].join('\n');
export const PASSKEY_SCRIPT_FILE = '/passkeys.js';
const HASH = createHash('sha256').update(PASSKEY_SCRIPT).digest('base64url').slice(0, 12);
/** With the content's hash, so that browsers can cache it and still fetch a new one at once. */
export const PASSKEY_SCRIPT_PATH = `${PASSKEY_SCRIPT_FILE}?v=${HASH}`;
