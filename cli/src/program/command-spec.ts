// Types of command specs, from which program, completion and reference are built. Specs must import
// nothing that only actions need: `berth --help` loads all of them.
import type { CliContext } from './context.ts';

export interface ArgumentSpec {
  /** `<sandbox>` is required, `[name]` optional, `[words...]` variadic. */
  name: string;
  about: string;
  choices?: readonly string[];
  /** Paths of the request's fields that it sets, if not its name; an empty one: the whole body. */
  fields?: readonly string[];
}

export interface OptionSpec {
  /** Such as `--vcpu <n>` or `-t, --tty`. */
  flags: string;
  about: string;
  /** Only allowed values. */
  choices?: readonly string[];
  /**
   * Parses a value, or throws an error that names the allowed ones. Called for each occurrence of
   * the option, with the previous result.
   */
  parse?: (typed: string, before: unknown) => unknown;
  default?: string | number | boolean;
  required?: true;
  /** Paths of the request's fields that it sets, if not its name in camel case. */
  fields?: readonly string[];
  /** Not in help: a mistake, which `parse` explains. */
  hidden?: true;
}

/** Parsed input. Option names are in camel case, as in commander. */
export interface Input<Options = Record<string, unknown>> {
  args: readonly string[];
  options: Readonly<Options>;
}

/** Resolves with the exit code; undefined is 0. */
export type Action<Options = Record<string, unknown>> = (
  context: CliContext,
  input: Input<Options>,
) => Promise<number | void>;

export interface CommandSpec {
  name: string;
  /** One line without a full stop. */
  summary: string;
  /** Rules and exit codes, in full sentences. */
  details?: string;
  arguments?: readonly ArgumentSpec[];
  options?: readonly OptionSpec[];
  /** At least one, each with an optional comment after ` # `. */
  examples: readonly string[];
  /**
   * Options after the first argument belong to the passed command or ssh. With `unknown`, unknown
   * options before it do too.
   */
  passThrough?: true | 'unknown';
  /** The caller writes fields of the API: messages keep their names. */
  rawFields?: true;
  /** Makes no API call: takes neither `--json` nor the common options. */
  local?: true;
  /** Calls the API, but has no JSON output. */
  json?: false;
  /**
   * Exit code for failures of Berth, where other codes are those of the remote program. Usage
   * errors stay 2.
   */
  failureExit?: number;
  /** Hidden from help: an alias. */
  hidden?: true;
  /** Runs for the group's word alone. */
  default?: true;
  load: () => Promise<Action<never>>;
}

export interface GroupSpec {
  name: string;
  alias?: string;
  summary: string;
  commands: readonly CommandSpec[];
}

/** Commands under one heading of `berth --help`. */
export interface Chapter {
  heading: string;
  entries: readonly (CommandSpec | GroupSpec)[];
}
