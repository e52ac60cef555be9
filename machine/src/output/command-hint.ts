// Commands that messages suggest.

/**
 * A command for the same installation, for a POSIX shell: without `--data-dir` it would act on the
 * default one. @param words further words, quoted
 */
export function commandHint(verb: string, { dataFolder }: { dataFolder: string }, ...words: string[]): string {
  return ['./berth', verb, '--data-dir', ...[dataFolder, ...words].map(shellWord)].join(' ');
}

/** Quotes a word for a POSIX shell if needed. */
export function shellWord(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
