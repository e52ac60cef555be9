// Why a repository could not be cloned: a code for programs and a sentence for people. Git's own
// words are the guest's, and a hostile host's before that: they are shown bounded, in plain
// characters, and without what the clone signed in with. Pure.
import type { Reason } from '../sandboxes/machine-death.ts';

const SENTENCES = {
  repository_not_found: 'there is no such repository',
  access_denied: "the repository does not exist, or the project's credentials do not open it",
  branch_not_found: 'the repository has no such branch',
  network: 'the git host could not be reached, or broke off',
  disk_full: "the sandbox's disk has no room for it",
  too_large: 'it is larger than a clone may be',
  timed_out: 'it took longer than a clone may take',
  folder_not_empty: '/code has something of the same name already',
  failed: 'git could not clone it',
  repository_not_allowed: 'the service takes no repositories of that host any more',
  credentials_unusable: "the project's credentials cannot be opened; set them anew",
  sandbox_unreachable: "the sandbox's machine did not answer",
  host_unavailable: 'the host of the sandbox did not answer',
} as const satisfies Record<string, string>;

export type CloneFailure = keyof typeof SENTENCES;

const WORDS_CHARACTERS = 400;
/** A shorter secret is in any sentence by chance: then none of the words are shown. */
const SECRET_CHARACTERS = 4;
const TAKEN_OUT = '[taken out]';

/**
 * The reason as a sandbox shows it; `words` are git's, `secrets` what they must not have in them,
 * in whatever form.
 */
export function cloneFailure(code: CloneFailure, words = '', secrets: readonly string[] = []): Reason {
  const clean = cleanWords(words, secrets);
  return { code, message: clean === '' ? SENTENCES[code] : `${SENTENCES[code]}: ${clean}` };
}

/**
 * Text of a stranger as it may be shown: one line of printable characters, bounded, without the
 * secrets.
 */
export function cleanWords(words: string, secrets: readonly string[]): string {
  if (secrets.some((secret) => secret !== '' && secret.length < SECRET_CHARACTERS && words.includes(secret))) return '';
  const known = secrets.filter((secret) => secret.length >= SECRET_CHARACTERS);
  // As they are first, so that none is taken apart by what follows, and again as what follows
  // leaves them.
  const cleared = withoutAll(
    withoutAll(words, known).replace(ESCAPES, '').replace(UNPRINTABLE, ' ').replace(/ {2,}/g, ' '),
    known,
  );
  const bare = cleared.replace(USER_IN_URL, `$1${TAKEN_OUT}@`).trim();
  return bare.length <= WORDS_CHARACTERS ? bare : `${bare.slice(0, WORDS_CHARACTERS).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

// oxlint-disable-next-line no-control-regex
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|.)/g;
/**
 * Control and format characters (those that turn the direction of text among them), line
 * separators, and halves of characters.
 */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Cn}\u2028\u2029]/gu;
const USER_IN_URL = /(\w:\/\/)[^\s/@]+@/g;

function withoutAll(text: string, secrets: readonly string[]): string {
  // The longest first: a shorter one may be part of it.
  const sorted = [...new Set(secrets)].sort((one, other) => other.length - one.length);
  return sorted.reduce((left, secret) => left.split(secret).join(TAKEN_OUT), text);
}
