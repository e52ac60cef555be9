// Options of the call in the commands that messages suggest.
import type { Command } from 'commander';
import { shellWord } from '@berth/machine/output/command-hint.ts';
import type { ConnectionFlags } from '../service/connection.ts';

/**
 * Adds `--profile` and `--url` of the call to each command of a text that takes them: without them
 * the command would act on another service.
 */
export function hintCompleter(program: Command, { profile, url }: ConnectionFlags): (text: string) => string {
  const given = Object.entries({ '--profile': profile, '--url': url });
  return (text) =>
    text.replaceAll(/\bberth((?: [a-z-]+)+)/g, (whole, words: string) => {
      const { path, command } = named(program, words.slice(1).split(' '));
      const added = given.flatMap(([option, value]) => {
        const isTaken = command.options.some(({ long }) => long === option);
        return value === undefined || !isTaken || text.includes(option) ? [] : [option, shellWord(value)];
      });
      return ['berth', ...path, ...added].join(' ') + whole.slice(['berth', ...path].join(' ').length);
    });
}

/** Follows the words to a command. `path`: the words that name it. */
export function named(program: Command, words: readonly string[]): { path: string[]; command: Command } {
  const path: string[] = [];
  let command = program;
  for (const word of words) {
    const next = command.commands.find((known) => known.name() === word || known.aliases().includes(word));
    if (next === undefined) break;
    path.push(word);
    command = next;
  }
  return { path, command };
}
