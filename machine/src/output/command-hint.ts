// Commands that messages suggest.

/**
 * A command for the same installation, for a POSIX shell: without `--data-dir` it would act on the
 * default one.
 */
export function commandHint(verb: string, { dataFolder }: { dataFolder: string }): string {
  return `./berth ${verb} --data-dir ${shellWord(dataFolder)}`;
}

function shellWord(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
