// Shell text for the words of a command line.

/** Words that need no quotes in any shell. */
const PLAIN = /^[A-Za-z0-9_@%+=:,./-]+$/;

/** Returns a single word unchanged as shell text; quotes several as exact arguments. */
export function commandText(words: readonly string[]): string {
  const [first = '', ...more] = words;
  return more.length === 0 ? first : words.map((word, at) => quoted(word, at === 0)).join(' ');
}

/** Quotes a word for a POSIX shell. @param first quote `=` too: here it would be an assignment */
export function quoted(word: string, first = false): string {
  if (PLAIN.test(word) && !(first && word.includes('='))) return word;
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
