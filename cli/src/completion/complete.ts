// `berth __complete SHELL WORD...`: called by the completion scripts. Prints one `VALUE TAB
// DESCRIPTION` per line, then a directive. `:file` and `:folder` complete paths in the shell;
// `:nospace` appends no space. Never fails and writes nothing to stderr.
import { buildProgram, type ProgramOptions } from '../program/program.ts';
import { plainText } from '../output/plain-text.ts';
import { completionRequestAt, type Suggestion, type CompletionRequest } from './completion-request.ts';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** @param words the shell, then the typed words after the program name, up to the cursor */
export async function complete([shell = '', ...given]: readonly string[], options: ProgramOptions): Promise<void> {
  const words = shell === 'bash' ? unsplit(given) : given;
  const program = buildProgram(options, () => Promise.resolve());
  const wanted = completionRequestAt(program, words);
  const { values, last } = await suggestionsFor(wanted, words, options);
  // Only fish replaces the whole word; other shells keep the text before the value.
  const before = shell === 'fish' ? wanted.before : '';
  const lines = values
    .filter(({ value }) => value.startsWith(wanted.typed))
    .map(({ value, about }) => (about === '' ? before + value : `${before}${value}\t${plainText(about)}`));
  options.streams.stdout.write(`${[...lines, last].join('\n')}\n`);
}

async function suggestionsFor(
  { words, lookUp, typed, first }: CompletionRequest,
  given: readonly string[],
  { environment }: ProgramOptions,
): Promise<{ values: Suggestion[]; last: string }> {
  if (lookUp === null) return { values: words, last: ':' };
  if (lookUp === 'file' || lookUp === 'folder') return { values: [], last: `:${lookUp}` };
  // A local path that starts with `sbx` has to be typed with `./`.
  if (lookUp === 'place' && !typed.startsWith('sbx')) return { values: [], last: ':file' };
  try {
    const { lookUp: find } = await import('./look-up.ts');
    const values = await find(lookUp === 'place' ? 'sandbox' : lookUp, { environment, flags: flagsIn(given) }, first);
    if (lookUp !== 'place') return { values, last: ':' };
    return { values: values.map(({ value, about }) => ({ value: `${value}:`, about })), last: ':nospace' };
  } catch {
    // Not signed in, or no response.
    return { values: [], last: ':' };
  }
}

/** Connection flags typed so far. */
function flagsIn(words: readonly string[]): Record<string, string> {
  const flags: Record<string, string> = {};
  for (const [at, word] of words.slice(0, -1).entries()) {
    const [, name, assigned] = /^--(profile|url|org|project)(?:=(.*))?$/.exec(word) ?? [];
    const value = assigned ?? (at + 1 < words.length - 1 ? words[at + 1] : undefined);
    if (name !== undefined && value !== undefined) flags[name] = value;
  }
  return flags;
}

/** Joins words again: Bash splits `--org=x` and `sbx:x` into three words each. */
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
