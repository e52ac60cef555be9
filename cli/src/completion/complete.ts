// `berth __complete SHELL WORD...`: what the scripts of `berth completion` ask at each key. Prints
// a line for each value, `value TAB what it is`, and a last one that begins with a colon: `:file`
// and `:folder` leave the rest to the shell, behind what is offered with `:nospace` more is typed.
// Says nothing on stderr and never fails: who presses a key wants no words about it.
import { buildProgram, type ProgramOptions } from '../program/program.ts';
import { plainText } from '../output/plain-text.ts';
import { wantedAt, type Suggestion, type Wanted } from './wanted.ts';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** @param words the shell, then what is typed without the program's own, up to the cursor */
export async function complete([shell = '', ...given]: readonly string[], options: ProgramOptions): Promise<void> {
  const words = shell === 'bash' ? unsplit(given) : given;
  const program = buildProgram(options, () => Promise.resolve());
  const wanted = wantedAt(program, words);
  const { values, last } = await suggestionsFor(wanted, words, options);
  // Only fish replaces the word as a whole; the others keep what is before the value.
  const before = shell === 'fish' ? wanted.before : '';
  const lines = values
    .filter(({ value }) => value.startsWith(wanted.typed))
    .map(({ value, about }) => (about === '' ? before + value : `${before}${value}\t${plainText(about)}`));
  options.streams.stdout.write(`${[...lines, last].join('\n')}\n`);
}

async function suggestionsFor(
  { words, lookUp, typed }: Wanted,
  given: readonly string[],
  { environment }: ProgramOptions,
): Promise<{ values: Suggestion[]; last: string }> {
  if (lookUp === null) return { values: words, last: ':' };
  if (lookUp === 'file' || lookUp === 'folder') return { values: [], last: `:${lookUp}` };
  // A path that begins as ids do is written with ./ where it is meant.
  if (lookUp === 'place' && !typed.startsWith('sbx')) return { values: [], last: ':file' };
  try {
    const { lookUp: find } = await import('./looked-up.ts');
    const values = await find(lookUp === 'place' ? 'sandbox' : lookUp, { environment, flags: flagsIn(given) });
    if (lookUp !== 'place') return { values, last: ':' };
    return { values: values.map(({ value, about }) => ({ value: `${value}:`, about })), last: ':nospace' };
  } catch {
    // Not signed in, no answer: there is nothing to offer.
    return { values: [], last: ':' };
  }
}

/** Where values come from, as far as it is typed already. */
function flagsIn(words: readonly string[]): Record<string, string> {
  const flags: Record<string, string> = {};
  for (const [at, word] of words.slice(0, -1).entries()) {
    const [, name, assigned] = /^--(profile|url|org|project)(?:=(.*))?$/.exec(word) ?? [];
    const value = assigned ?? (at + 1 < words.length - 1 ? words[at + 1] : undefined);
    if (name !== undefined && value !== undefined) flags[name] = value;
  }
  return flags;
}

/** Bash hands over `--org=x` and `sbx:x` as three words each. */
function unsplit(words: readonly string[]): string[] {
  const whole: string[] = [];
  let joins = false;
  for (const word of words) {
    const splits = word === '=' || word === ':';
    if ((splits || joins) && whole.length > 0) whole.push(`${whole.pop()}${word}`);
    else whole.push(word);
    joins = splits;
  }
  return whole;
}
