// What a command is, as data: its words, what it takes, examples, and where its action is. The
// program, the completions and the reference are made from it. Must not import what actions need:
// `berth --help` loads all of these and nothing else.
import type { CliContext } from './context.ts';

interface ArgumentSpec {
  /**
   * As help shows it: `<sandbox>` must be given, `[name]` may be, `[words...]` takes all that is
   * left.
   */
  name: string;
  about: string;
  /** Words that completion offers. */
  choices?: readonly string[];
}

export interface OptionSpec {
  /** As help shows it: `--vcpu <n>`, `-t, --tty`. */
  flags: string;
  about: string;
  /** The only values. */
  choices?: readonly string[];
  /**
   * Turns what was typed into a value, or throws a UsageError that says what is allowed. Called
   * once for each time the option is given, with the value so far.
   */
  parse?: (typed: string, before: unknown) => unknown;
  default?: string | number | boolean;
  /** Refused as missing without it. */
  required?: true;
}

/** What was typed. `Options` are the long names in camel case, as commander makes them. */
export interface Input<Options = Record<string, unknown>> {
  args: readonly string[];
  options: Readonly<Options>;
}

/** Resolves with the exit code; nothing is 0. */
export type Action<Options = Record<string, unknown>> = (
  context: CliContext,
  input: Input<Options>,
) => Promise<number | void>;

export interface CommandSpec {
  name: string;
  /** One line without a full stop. */
  summary: string;
  /** What the summary leaves out: rules, exit codes. Whole sentences. */
  details?: string;
  arguments?: readonly ArgumentSpec[];
  options?: readonly OptionSpec[];
  /** Lines as a person types them, each with what it does behind ` # `. At least one. */
  examples: readonly string[];
  /**
   * Options behind the first argument belong to what the arguments name (a command in a sandbox,
   * ssh), not to berth; with `unknown` also those before it that are not ours.
   */
  passThrough?: true | 'unknown';
  /** Takes no `--json`, and none of the options about the API: it does not call it. */
  local?: true;
  /** Calls the API, but has no object to print. */
  json?: false;
  /**
   * Exit code of what fails in Berth (typed wrongly: still 2), where the others are those of what
   * ran.
   */
  failureExit?: number;
  /** Not shown by help: another name of a command that is. */
  hidden?: true;
  /** Of a group: what the group's word alone does. */
  default?: true;
  load: () => Promise<Action<never>>;
}

/** Commands that have their first word in common. */
export interface GroupSpec {
  name: string;
  alias?: string;
  summary: string;
  commands: readonly CommandSpec[];
}

/** Commands below a heading of `berth --help`. */
export interface Chapter {
  heading: string;
  entries: readonly (CommandSpec | GroupSpec)[];
}
