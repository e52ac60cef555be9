// The tree of commands as commander has it, made from their specs, and how one is run: its context,
// its failure, its exit code.
import { Command, CommanderError, Option } from 'commander';
import type { CliContext } from './context.ts';
import type { ConnectionFlags } from '../service/connection.ts';
import type { Action, Chapter, CommandSpec, GroupSpec, Input, OptionSpec } from './command-spec.ts';

/** As in failure.ts, which help does not load. */
const USAGE = 2;
const SHARED = 'Options of every command that calls the API:';

export interface ProgramOptions {
  chapters: readonly Chapter[];
  version: string;
  streams: { stdin: NodeJS.ReadStream; stdout: NodeJS.WriteStream; stderr: NodeJS.WriteStream };
  environment: Readonly<NodeJS.ProcessEnv>;
}

/**
 * Runs what was typed. Resolves with the exit code; never rejects. @param words without the
 * program's own
 */
export async function runProgram(words: readonly string[], options: ProgramOptions): Promise<number> {
  let exitCode = 0;
  const program = buildProgram(options, async (spec, command, given) => {
    exitCode = await runAction(spec, command, given, options);
  });
  try {
    await program.parseAsync([...words], { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE;
    return await failed(error, options);
  }
}

type Run = (spec: CommandSpec, command: Command, args: string[]) => Promise<void>;

const SPECS = new WeakMap<Command, CommandSpec>();

/** What a command of the tree was made from; undefined for the program and its groups. */
export function specOf(command: Command): CommandSpec | undefined {
  return SPECS.get(command);
}

/** All commands, without running one. */
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
  return program.addHelpText('after', "\nberth help COMMAND shows a command's options and examples.");
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
  if (spec.details !== undefined) command.addHelpText('after', `\n${spec.details}`);
  command.addHelpText('after', `\nExamples:\n${spec.examples.map((line) => `  $ ${line}`).join('\n')}`);
  command.action(async () => await run(spec, command, command.args));
  return command;
}

/** Of every command that calls the API; one that has its own of that name keeps it. */
export function sharedOptions({ json }: { json: boolean }): OptionSpec[] {
  return [
    ...(json ? [{ flags: '--json', about: "print the API's answer as it is" }] : []),
    { flags: '--profile <name>', about: 'the profile to use (BERTH_PROFILE)' },
    { flags: '--url <url>', about: 'where the API is (BERTH_URL)' },
    { flags: '--org <id>', about: 'the org that is meant (BERTH_ORG_ID)' },
    { flags: '--project <id>', about: 'the project that is meant (BERTH_PROJECT_ID)' },
  ];
}

function helpHint(command: Command): string {
  const words = [command.name()];
  for (let { parent } = command; parent !== null; { parent } = parent) words.unshift(parent.name());
  return `(${words.join(' ')} --help shows what it takes)`;
}

function optionOf({ flags, about, choices, parse, default: value, required }: OptionSpec): Option {
  const option = new Option(flags, about);
  if (choices !== undefined) option.choices([...choices]);
  if (parse !== undefined) option.argParser(parse);
  if (value !== undefined) option.default(value);
  return required === true ? option.makeOptionMandatory() : option;
}

/** Signals that end a command early; what it began is taken back as far as it can be. */
const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** Signals that an action may take besides. */
const FURTHER = ['SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGPIPE'] as const;

async function runAction(
  spec: CommandSpec,
  command: Command,
  args: readonly string[],
  options: ProgramOptions,
): Promise<number> {
  const { environment, streams } = options;
  const [{ Output }, { EXIT_BY_SIGNAL, CliFailure }, load] = await Promise.all([
    import('../output/output.ts'),
    import('../output/failure.ts'),
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
    out: new Output(streams, environment, { json: typed.json === true }),
    ...streams,
    flags: spec.local === true ? {} : typed,
    connect: once(async () => {
      const { connect } = await import('../service/connection.ts');
      return await connect({ environment, flags: typed, signal: aborting.signal });
    }),
  };
  try {
    return (await (load as Action)(context, { args, options: typed } satisfies Input)) ?? 0;
  } catch (error) {
    // Whoever hung up does not read; ssh does it to each ProxyCommand at the end.
    if (ended === 'SIGHUP') return EXIT_BY_SIGNAL.SIGHUP;
    // What a signal cut off is no failure of its own, whatever it was in the middle of.
    return await failed(ended === null ? error : aborting.signal.reason, options, spec.failureExit);
  }
}

async function failed(error: unknown, { streams }: ProgramOptions, failureExit?: number): Promise<number> {
  const { tell } = await import('../output/report.ts');
  const { exitCode, lines } = tell(error, { failureExit });
  if (lines.length > 0) streams.stderr.write(`${lines.join('\n')}\n`);
  return exitCode;
}

function once<T>(work: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => (result ??= work());
}
