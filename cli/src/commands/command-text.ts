// What a sandbox's shell is given for the words of a command line.

/** What no shell gives a meaning to. */
const PLAIN = /^[A-Za-z0-9_@%+=:,./-]+$/;

/** One word is shell text as it is; several are quoted, so that exactly these arguments arrive. */
export function commandText(words: readonly string[]): string {
  const [first = '', ...more] = words;
  return more.length === 0 ? first : words.map((word, at) => quoted(word, at === 0)).join(' ');
}

/** A word for a POSIX shell. @param first an assignment is one only there, and must not be */
export function quoted(word: string, first = false): string {
  if (PLAIN.test(word) && !(first && word.includes('='))) return word;
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
