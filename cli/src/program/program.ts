// Builds the commander program from specs and runs a command: context, failures, exit code.
import { Command, CommanderError, Option } from 'commander';
import type { Output } from '../output/output.ts';
import type { CallContext, FailureContext } from '../output/report.ts';
import type { CliContext } from './context.ts';
import type { ConnectionFlags } from '../service/connection.ts';
import type { Action, Chapter, CommandSpec, GroupSpec, Input, OptionSpec } from './command-spec.ts';
import { once } from '../service/once.ts';
import { wrapParagraphs } from './paragraphs.ts';

/** Copy of EXIT.usage: help must not load failure.ts. */
const USAGE = 2;
const SHARED = 'Common options:';

export interface ProgramOptions {
  chapters: readonly Chapter[];
  version: string;
  streams: { stdin: NodeJS.ReadStream; stdout: NodeJS.WriteStream; stderr: NodeJS.WriteStream };
  environment: Readonly<NodeJS.ProcessEnv>;
}

/** Resolves with the exit code; never rejects. @param words arguments without the program name */
export async function runProgram(words: readonly string[], options: ProgramOptions): Promise<number> {
  let exitCode = 0;
  const program = buildProgram(options, async (spec, command, given) => {
    exitCode = await runAction(spec, command, given, options);
  });
  try {
    await program.parseAsync(await helpAsOption(program, words), { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE;
    const { Output } = await import('../output/output.ts');
    return await failed(error, new Output(options.streams, options.environment));
  }
}

/** `help NAME` as `NAME --help`, which refuses an unknown name and suggests similar ones. */
async function helpAsOption(program: Command, [first, ...names]: readonly string[]): Promise<string[]> {
  const words = first === undefined ? [] : [first, ...names];
  if (first !== 'help' || names.length === 0 || names.some((name) => name.startsWith('-'))) return words;
  const { named } = await import('./hints.ts');
  const { path, command } = named(program, names);
  const isUnknown = command.commands.length > 0 && path.length < names.length;
  // The default command of a group takes other words.
  const isDefault = command.commands.some((one) => specOf(one)?.default === true);
  return isUnknown && !isDefault ? names.slice(0, path.length + 1) : [...path, '--help'];
}

type Run = (spec: CommandSpec, command: Command, args: string[]) => Promise<void>;

const SPECS = new WeakMap<Command, CommandSpec>();

/** Returns undefined for the program and its groups. */
export function specOf(command: Command): CommandSpec | undefined {
  return SPECS.get(command);
}

export function buildProgram({ chapters, version, streams }: ProgramOptions, run: Run): Command {
  const program = new Command('berth')
    .description('Isolated microVM sandboxes for running code and coding agents')
    .version(version, '-V, --version', 'show the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand('help [command...]', 'show help of a command')
    .showSuggestionAfterError()
    .enablePositionalOptions()
    .exitOverride()
    .configureHelp({ showGlobalOptions: false })
    .configureOutput({
      writeOut: (text) => void streams.stdout.write(text),
      writeErr: (text) => void streams.stderr.write(text),
    });
  for (const { heading, entries } of chapters) {
    for (const entry of entries) {
      const command = 'commands' in entry ? addGroup(program, entry, run) : addCommand(program, entry, run);
      command.helpGroup(`${heading}:`);
    }
  }
  return program.addHelpText('after', "\nRun 'berth help COMMAND' for the options and examples of a command.");
}

function addGroup(parent: Command, group: GroupSpec, run: Run): Command {
  const command = parent.command(group.name).description(group.summary);
  if (group.alias !== undefined) command.alias(group.alias);
  command.enablePositionalOptions().showHelpAfterError(helpHint(command));
  for (const spec of group.commands) addCommand(command, spec, run);
  return command;
}

function addCommand(parent: Command, spec: CommandSpec, run: Run): Command {
  const { hidden, default: isDefault } = spec;
  const command = parent
    .command(spec.name, { hidden: hidden === true, isDefault: isDefault === true })
    .description(spec.summary);
  SPECS.set(command, spec);
  command.showHelpAfterError(helpHint(command));
  for (const { name, about, choices } of spec.arguments ?? []) {
    const argument = command.createArgument(name, about);
    command.addArgument(choices === undefined ? argument : argument.choices([...choices]));
  }
  for (const option of spec.options ?? []) command.addOption(optionOf(option));
  if (spec.local !== true) {
    command.optionsGroup(SHARED);
    for (const option of sharedOptions({ json: spec.json !== false })) {
      const { long } = optionOf(option);
      if (!command.options.some((own) => own.long === long)) command.addOption(optionOf(option));
    }
  }
  if (spec.passThrough !== undefined) command.passThroughOptions();
  if (spec.passThrough === 'unknown') command.allowUnknownOption();
  if (spec.details !== undefined) command.addHelpText('after', `\n${wrapParagraphs(spec.details)}`);
  command.addHelpText('after', `\nExamples:\n${spec.examples.map((line) => `  $ ${line}`).join('\n')}`);
  command.action(async () => await run(spec, command, command.args));
  return command;
}

/**
 * Options of commands that call the API. A command's own option of the same name takes precedence.
 */
export function sharedOptions({ json }: { json: boolean }): OptionSpec[] {
  return [
    ...(json ? [{ flags: '--json', about: 'print the response of the API as JSON' }] : []),
    { flags: '--profile <name>', about: 'profile to use (BERTH_PROFILE)' },
    { flags: '--url <url>', about: 'URL of the API (BERTH_URL)' },
    { flags: '--org <id>', about: 'org id (BERTH_ORG_ID)', fields: ['orgId'] },
    { flags: '--project <id>', about: 'project id (BERTH_PROJECT_ID)', fields: ['projectId'] },
  ];
}

function rootOf(command: Command): Command {
  return command.parent === null ? command : rootOf(command.parent);
}

function helpHint(command: Command): string {
  const words = [command.name()];
  for (let { parent } = command; parent !== null; { parent } = parent) words.unshift(parent.name());
  return `(run '${words.join(' ')} --help' for usage)`;
}

function optionOf({ flags, about, choices, parse, default: value, required, hidden }: OptionSpec): Option {
  const option = new Option(flags, about);
  if (choices !== undefined) option.choices([...choices]);
  if (parse !== undefined) option.argParser(parse);
  if (value !== undefined) option.default(value);
  if (hidden === true) option.hideHelp();
  return required === true ? option.makeOptionMandatory() : option;
}

/** Signals that abort a command. */
const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** Further signals for takeSignals. */
const FURTHER = ['SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGPIPE'] as const;

async function runAction(
  spec: CommandSpec,
  command: Command,
  args: readonly string[],
  options: ProgramOptions,
): Promise<number> {
  const { environment, streams } = options;
  const [{ Output }, { EXIT_BY_SIGNAL, CliFailure }, { hintCompleter }, { fieldNames }, load] = await Promise.all([
    import('../output/output.ts'),
    import('../output/failure.ts'),
    import('./hints.ts'),
    import('./field-names.ts'),
    spec.load(),
  ]);
  const typed = command.opts<Record<string, unknown> & ConnectionFlags & { json?: boolean }>();
  const aborting = new AbortController();
  let ended: (typeof ENDING)[number] | null = null;
  const takers: ((name: NodeJS.Signals) => void)[] = [];
  const giveTaker = (name: NodeJS.Signals): void => takers.at(-1)?.(name);
  for (const signal of ENDING) {
    process.on(signal, () => {
      if (takers.length > 0) {
        giveTaker(signal);
        return;
      }
      ended ??= signal;
      aborting.abort(new CliFailure(`stopped by ${signal}`, { exitCode: EXIT_BY_SIGNAL[signal] }));
    });
  }
  const flags = spec.local === true ? {} : typed;
  const out = new Output(streams, environment, {
    json: typed.json === true,
    completeHints: hintCompleter(rootOf(command), flags),
  });
  const isTyped = (name: string): boolean => command.getOptionValueSource(name) === 'cli';
  let url: string | undefined;
  const call: CallContext = {
    fieldName: fieldNames(spec, sharedOptions({ json: false }), new Set(Object.keys(typed).filter(isTyped))),
    sandbox: spec.arguments?.[0]?.name === '<sandbox>' ? args[0] : undefined,
    url: () => url,
  };
  const context: CliContext = {
    environment,
    signal: aborting.signal,
    takeSignals: (take) => {
      if (takers.length === 0) FURTHER.forEach((name) => process.on(name, giveTaker));
      takers.push(take);
      return () => {
        takers.splice(takers.lastIndexOf(take), 1);
        if (takers.length === 0) FURTHER.forEach((name) => process.off(name, giveTaker));
      };
    },
    out,
    ...streams,
    flags,
    call,
    connect: once(async () => {
      const { connect } = await import('../service/connection.ts');
      const connection = await connect({ environment, flags: typed, signal: aborting.signal });
      ({ url } = connection);
      return connection;
    }),
  };
  try {
    return (await (load as Action)(context, { args, options: typed } satisfies Input)) ?? 0;
  } catch (error) {
    // ssh hangs up its ProxyCommand on exit: print nothing.
    if (ended === 'SIGHUP') return EXIT_BY_SIGNAL.SIGHUP;
    // Report the signal instead of the error it caused.
    return await failed(ended === null ? error : aborting.signal.reason, out, { failureExit: spec.failureExit, call });
  }
}

async function failed(error: unknown, out: Output, about: FailureContext = {}): Promise<number> {
  const { reportOf } = await import('../output/report.ts');
  const { exitCode, lines } = reportOf(error, about);
  lines.forEach((line) => out.hint(line));
  return exitCode;
}
