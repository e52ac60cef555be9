// Determines from the command tree which words or kind of value fit at the cursor. Makes no request
// and is independent of the shell.
import type { Argument, Command, Option } from 'commander';
import { specOf } from '../program/program.ts';

export interface Suggestion {
  value: string;
  about: string;
}

/**
 * Kinds of values outside the command tree. A place is SANDBOX:PATH or a local path, a conversation
 * an agent session or a sandbox.
 */
type CompletionSource =
  | 'sandbox'
  | 'process'
  | 'session'
  | 'conversation'
  | 'org'
  | 'project'
  | 'profile'
  | 'file'
  | 'folder'
  | 'place';

export interface CompletionRequest {
  /** Typed part of the value. */
  typed: string;
  /** Text before it in the same word: `--org=`. */
  before: string;
  words: Suggestion[];
  lookUp: CompletionSource | null;
  /** First argument of the command, which has the processes if it is a sandbox. */
  first: string | undefined;
}

/** By option, regardless of the placeholder. */
const OF_OPTIONS: Readonly<Record<string, CompletionSource>> = {
  '--profile': 'profile',
  '--org': 'org',
  '--project': 'project',
};
/** By placeholder of an argument or option value. */
const OF_PLACEHOLDERS: Readonly<Record<string, CompletionSource>> = {
  sandbox: 'sandbox',
  sandboxes: 'sandbox',
  process: 'process',
  processes: 'process',
  session: 'session',
  sessions: 'session',
  'session-or-sandbox': 'conversation',
  org: 'org',
  project: 'project',
  profile: 'profile',
  file: 'file',
  path: 'file',
  folder: 'folder',
  source: 'place',
  target: 'place',
};

/** @param words all words after the program name, up to the cursor; the last may be empty */
export function completionRequestAt(program: Command, words: readonly string[]): CompletionRequest {
  const typed = words.at(-1) ?? '';
  const place = walk(program, words.slice(0, -1));
  const { command, first } = place;
  if (place.valueOf !== null) return { typed, before: '', first, ...valuesOf(place.valueOf) };
  const assigned = place.options ? /^(--[^=]+=)(.*)$/s.exec(typed) : null;
  if (assigned !== null) {
    const [, before = '', value = ''] = assigned;
    const option = command.options.find(({ long }) => long === before.slice(0, -1));
    const values = option !== undefined && takesValue(option) ? valuesOf(option) : NOTHING;
    return { typed: value, before, first, ...values };
  }
  if (place.options && typed.startsWith('-'))
    return { typed, before: '', first, words: optionsOf(command), lookUp: null };
  return { typed, before: '', first, ...operandOf(place) };
}

const NOTHING = { words: [] as Suggestion[], lookUp: null };

interface Place {
  command: Command;
  /** Arguments of the command so far. */
  operands: number;
  /** The first of them. */
  first: string | undefined;
  /** Whether options of the command are still allowed. */
  options: boolean;
  /** Option that takes the next word as its value. */
  valueOf: Option | null;
}

function walk(program: Command, words: readonly string[]): Place {
  const place: Place = { command: program, operands: 0, first: undefined, options: true, valueOf: null };
  for (const word of words) {
    if (place.valueOf !== null) {
      place.valueOf = null;
    } else if (place.options && word === '--') {
      place.options = false;
    } else if (place.options && word.startsWith('-') && word !== '-') {
      const option = place.command.options.find(({ long, short }) => word === long || word === short);
      place.valueOf = option !== undefined && takesValue(option) ? option : null;
    } else if (word !== 'help' || place.command !== program || place.operands > 0) {
      const next = place.operands === 0 && place.options ? commandOf(place.command, word) : undefined;
      if (next === undefined) {
        place.operands += 1;
        place.first ??= word;
      }
      place.command = next ?? place.command;
      // The following words belong to the passed command.
      if (next === undefined && specOf(place.command)?.passThrough !== undefined) place.options = false;
    }
  }
  return place;
}

function commandOf(command: Command, word: string): Command | undefined {
  return command.commands.find((below) => below.name() === word || below.aliases().includes(word));
}

function takesValue({ required, optional }: Option): boolean {
  return required || optional;
}

function operandOf({ command, operands }: Place): Pick<CompletionRequest, 'words' | 'lookUp'> {
  if (operands === 0 && command.commands.length > 0) return { words: commandsOf(command), lookUp: null };
  const args = command.registeredArguments;
  const last = args.at(-1);
  const argument = args[operands] ?? (last?.variadic === true ? last : undefined);
  return argument === undefined ? NOTHING : valuesOf(argument);
}

function valuesOf(of: Option | Argument): Pick<CompletionRequest, 'words' | 'lookUp'> {
  if (of.argChoices !== undefined) return { words: of.argChoices.map((value) => ({ value, about: '' })), lookUp: null };
  return { words: [], lookUp: 'long' in of ? ofOption(of) : (OF_PLACEHOLDERS[of.name()] ?? null) };
}

function ofOption({ long = '', flags }: Option): CompletionSource | null {
  const placeholder = /[<[]([^>\].]+)/.exec(flags)?.[1] ?? '';
  return OF_OPTIONS[long] ?? OF_PLACEHOLDERS[placeholder] ?? null;
}

function commandsOf(command: Command): Suggestion[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .map((below) => ({ value: below.name(), about: below.summary() || below.description() }));
}

function optionsOf(command: Command): Suggestion[] {
  return command
    .createHelp()
    .visibleOptions(command)
    .map(({ long, short, description }) => ({ value: long ?? short ?? '', about: description }));
}
