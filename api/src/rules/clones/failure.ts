// Clone failures: a code for programs and a message for people. Git's output comes from the guest
// and a possibly hostile server. Messages show it truncated, in printable characters, without the
// credentials of the clone. Pure.
import { DIAGNOSTICS_LIMITS } from '@berth/contract/diagnostics/diagnostics.ts';
import { ESCAPES, HIDDEN, shownEnd } from '../shown-text.ts';
import type { Reason } from '../sandboxes/machine-death.ts';

const SENTENCES = {
  repository_not_found: 'the repository does not exist',
  access_denied: "the repository does not exist, or the project's credentials grant no access to it",
  branch_not_found: 'the repository has no such branch',
  network: 'the git host could not be reached, or closed the connection',
  disk_full: "the sandbox's disk is too small for the repository",
  too_large: "the repository exceeds the clone's size limit",
  timed_out: 'the clone exceeded its time limit',
  folder_not_empty: '/code already contains an entry of this name',
  failed: 'git could not clone the repository',
  repository_not_allowed: 'the service no longer allows repositories on this host',
  credentials_unusable: "the project's credentials cannot be decrypted; set them again",
  sandbox_unreachable: "the sandbox's VM did not respond",
  host_unavailable: "the sandbox's host did not respond",
} as const satisfies Record<string, string>;

export type CloneFailure = keyof typeof SENTENCES;

const WORDS_CHARACTERS = 400;
/** Shorter secrets may occur in any text by chance: git's output is then hidden completely. */
const SECRET_CHARACTERS = 4;
const REDACTED = '[redacted]';

/**
 * The failure reason shown on a sandbox. `words` is git's output; no form of any of `secrets`
 * appears in the result.
 */
export function cloneFailure(code: CloneFailure, words = '', secrets: readonly string[] = []): Reason {
  const clean = cleanWords(words, secrets);
  return { code, message: clean === '' ? SENTENCES[code] : `${SENTENCES[code]}: ${clean}` };
}

/** Sanitises untrusted text: one bounded line of printable characters, without the secrets. */
export function cleanWords(words: string, secrets: readonly string[]): string {
  const cleared = redacted(words, secrets, (text) =>
    text.replace(ESCAPES, '').replace(HIDDEN, ' ').replace(/ {2,}/g, ' '),
  );
  const bare = cleared.trim();
  return bare.length <= WORDS_CHARACTERS ? bare : `${bare.slice(0, WORDS_CHARACTERS).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

/** Sanitises git's output: its last lines, without the secrets. */
export function cleanOutput(
  output: { text: string; truncated: boolean },
  secrets: readonly string[],
): { text: string; truncated: boolean } {
  // The first line of a cut text may begin within a secret.
  const [, whole = ''] = output.truncated ? (/[\r\n]([^]*)/.exec(output.text) ?? []) : [undefined, output.text];
  const { cloneCharacters } = DIAGNOSTICS_LIMITS;
  // Redacting may lengthen the text, which is cut only then.
  const cleared = redacted(whole, secrets, (text) => shownEnd(text, Infinity).text);
  const { text, isCut } = shownEnd(cleared, cloneCharacters);
  return { text, truncated: output.truncated || isCut };
}

/** Cleans a text; no form of the secrets, and no user of a URL, appears in the result. */
function redacted(text: string, secrets: readonly string[], clean: (text: string) => string): string {
  if (secrets.some((secret) => secret !== '' && secret.length < SECRET_CHARACTERS && text.includes(secret))) return '';
  const known = secrets.filter((secret) => secret.length >= SECRET_CHARACTERS);
  // Remove secrets before any other change could split one, and again after changes that could join
  // one.
  return withoutAll(clean(withoutAll(text, known)), known).replace(USER_IN_URL, `$1${REDACTED}@`);
}

const USER_IN_URL = /(\w:\/\/)[^\s/@]+@/g;

function withoutAll(text: string, secrets: readonly string[]): string {
  // Longest first: a shorter secret may be part of a longer one.
  const sorted = [...new Set(secrets)].sort((one, other) => other.length - one.length);
  return sorted.reduce((left, secret) => left.split(secret).join(REDACTED), text);
}
