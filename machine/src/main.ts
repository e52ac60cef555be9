// The program behind the launcher: verbs and flags. Owns nothing of what the verbs do.
import { Command } from 'commander';
import { readConfig } from './config.ts';
import type { Flags } from './config.ts';
import { OperatorFailure } from './failure.ts';
import { Progress } from './progress.ts';
import { bench } from './verbs/bench.ts';
import { chaos } from './verbs/chaos.ts';
import type { VerbContext } from './verbs/context.ts';
import { demo } from './verbs/demo.ts';
import { doctor } from './verbs/doctor.ts';
import { down } from './verbs/down.ts';
import { fuzz } from './verbs/fuzz.ts';
import { createKeyOnMachine } from './verbs/keys.ts';
import { knownHost } from './verbs/known-host.ts';
import { makeOwnerLinkOnMachine } from './verbs/owner-link.ts';
import { setPlanOnMachine } from './verbs/plans.ts';
import { shell } from './verbs/shell.ts';
import { ssh } from './verbs/ssh.ts';
import { test } from './verbs/test.ts';
import { tunnel } from './verbs/tunnel.ts';
import { up } from './verbs/up.ts';

// Whatever the operator's is: what is secret gets its mode explicitly, the rest must be readable by the users that services run as.
process.umask(0o022);

/** What the verbs of a client have in common. */
const SANDBOX = 'id of the sandbox; BERTH_API_KEY says with which key, BERTH_URL where the API is (default: on this machine)';

const progress = new Progress();

const program = new Command('berth')
  .description('Isolated microVM sandboxes on your own machine')
  .showHelpAfterError('(./berth help shows every command)')
  .showSuggestionAfterError()
  .enablePositionalOptions();

withFolders(withService(program.command('up')))
  .description('start the service and stay; the first start prints an API key and a link to sign in')
  .action(run((context) => up(context)));
withFolders(program.command('down'))
  .description('stop the service of a data folder; sandboxes go on running')
  .action(run((context) => down(context)));
withFolders(withService(program.command('doctor')))
  .description('check this machine and say how to mend what is wrong')
  .action(run((context) => doctor(context)));
withFolders(withService(program.command('demo')))
  .description('set this machine up and show the main job: create a sandbox, run commands, destroy it')
  .action(run((context) => demo(context)));
const keys = program.command('keys').description('API keys of the operator');
withFolders(keys.command('create'))
  .description('make an API key and print it')
  .option('--name <name>', 'what the key is for', 'operator')
  .option('--database-url <url>', 'a PostgreSQL of yours (BERTH_DATABASE_URL)')
  .action(run((context, flags) => createKeyOnMachine(context, flags['name'] ?? 'operator')));
withFolders(program.command('owner-link'))
  .description('make a link that lets the owner of the first org sign in, and print it')
  .option('--database-url <url>', 'a PostgreSQL of yours (BERTH_DATABASE_URL)')
  .action(run((context) => makeOwnerLinkOnMachine(context)));
const plans = program.command('plans').description('plans of orgs');
withFolders(plans.command('set'))
  .description('give an org a plan of the catalogue')
  .option('--org <id>', 'the org (default: the first)')
  .option('--plan <id>', 'the plan, by its id in the catalogue')
  .option('--database-url <url>', 'a PostgreSQL of yours (BERTH_DATABASE_URL)')
  .action(run((context, flags) => setPlanOnMachine(context, flags['org'] ?? null, flags['plan'])));
program
  .command('ssh')
  .description('ssh into a sandbox that was created with sshPublicKey; what follows its id goes to ssh')
  .argument('<sandbox>', SANDBOX)
  .argument('[arguments...]', 'options of ssh (-i, -L, -R, -N, ...), then a command')
  .passThroughOptions()
  .action(run((context, _flags, [sandbox = '', ...args]) => ssh(context, sandbox, args)));
program
  .command('shell')
  .description('the login shell of a sandbox in this terminal; needs no ssh and no key of ssh')
  .argument('<sandbox>', SANDBOX)
  .action(run((context, _flags, [sandbox = '']) => shell(context, sandbox)));
program
  .command('tunnel')
  .description('connect stdin and stdout with a port of a sandbox, for ProxyCommand of ssh')
  .argument('<sandbox>', SANDBOX)
  .option('--port <port>', 'port of the sandbox (default 22)')
  .action(run((context, flags, [sandbox = '']) => tunnel(context, sandbox, flags['port'])));
program
  .command('known-host')
  .description("print a sandbox's line of known_hosts, for KnownHostsCommand of ssh")
  .argument('<sandbox>', SANDBOX)
  .action(run((context, _flags, [sandbox = '']) => knownHost(context, sandbox)));
withFolders(program.command('test'))
  .description('set this machine up and run the tests')
  .argument('[filters...]', "parts of test files' paths; without any: all files")
  .option('--name <pattern>', 'only tests whose title matches')
  .action(run((context, flags, filters) => test(context, { filters, name: flags['name'] })));
withFolders(program.command('bench'))
  .description('set this machine up and run a benchmark; what follows its name goes to it')
  .argument('<name>', 'file in bench/ without its ending')
  .argument('[arguments...]', 'for the benchmark')
  .passThroughOptions()
  .allowUnknownOption()
  .action(run((context, _flags, [name = '', ...args]) => bench(context, name, args)));
withFolders(program.command('chaos'))
  .description('set this machine up and break a Berth of its own at random for a while; nothing acknowledged may be lost')
  .argument('[arguments...]', '--minutes N --seed S, and others for the run')
  .passThroughOptions()
  .allowUnknownOption()
  .action(run((context, _flags, args) => chaos(context, args)));
withFolders(program.command('fuzz'))
  .description('set this machine up and send random requests to a Berth of its own; each must be answered as the contract says')
  .argument('[arguments...]', '--seed S, and others for the run')
  .passThroughOptions()
  .allowUnknownOption()
  .action(run((context, _flags, args) => fuzz(context, 'fuzz', args)));
withFolders(program.command('fuzz-api'))
  .description(
    'set this machine up and send requests made of openapi.json alone to a Berth of its own; each answer must be one of the document',
  )
  .argument('[arguments...]', '--seed S, --runs N, --real')
  .passThroughOptions()
  .allowUnknownOption()
  .action(run((context, _flags, args) => fuzz(context, 'fuzz-api', args)));

await program.parseAsync();

function withFolders(command: Command): Command {
  return command
    .option('--data-dir <folder>', 'what must not be lost (BERTH_DATA_DIR; default /var/lib/berth, or ~/.local/state/berth of a user)')
    .option('--cache-dir <folder>', 'what can be made again (BERTH_CACHE_DIR; default /var/cache/berth, or ~/.cache/berth of a user)');
}

function withService(command: Command): Command {
  return command
    .option('--port <port>', 'port of the API (BERTH_PORT; default 4800)')
    .option('--listen <address>', 'address of the API (BERTH_LISTEN; default 127.0.0.1)')
    .option('--database-url <url>', 'a PostgreSQL of yours instead of the embedded one (BERTH_DATABASE_URL)')
    .option('--guest-cidr <network>', 'addresses for the network slots of sandboxes (BERTH_GUEST_CIDR; default 10.200.0.0/16)')
    .option('--cpu-overcommit <factor>', 'vCPUs promised per CPU (BERTH_CPU_OVERCOMMIT; default 8)')
    .option('--memory-reserve-mib <MiB>', 'memory kept from sandboxes (BERTH_MEMORY_RESERVE_MIB; default 2048)')
    .option('--plans-file <file>', 'what plans allow, as JSON (BERTH_PLANS_FILE; default: one plan without limits)')
    .option('--driver <name>', 'qemu, or fake: no isolation, for tests of Berth itself (BERTH_DRIVER; default qemu)');
}

type Options = Flags & { name?: string; org?: string; plan?: string };

/** Wraps a verb as commander calls it: its positional arguments, its options, the command. */
function run(verb: (context: VerbContext, flags: Options, args: string[]) => Promise<number>): (...given: unknown[]) => Promise<void> {
  return async (...given) => {
    const command = given.at(-1) as Command;
    const args = given
      .slice(0, -2)
      .flat()
      .filter((word): word is string => typeof word === 'string');
    const flags = command.opts<Options>();
    const wanted = new AbortController();
    for (const signalName of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signalName, () => wanted.abort(new OperatorFailure(`stopped by ${signalName}`)));
    }
    try {
      const config = readConfig(flags, process.env);
      const print = (line: string): void => void process.stdout.write(`${line}\n`);
      process.exitCode = await verb({ config, progress, environment: process.env, signal: wanted.signal, print }, flags, args);
    } catch (error) {
      // What was cut off by a signal is no failure of its own, whatever it was in the middle of.
      process.exitCode = wanted.signal.aborted ? 130 : 1;
      report(wanted.signal.aborted ? wanted.signal.reason : error);
    }
  };
}

function report(error: unknown): void {
  if (error instanceof OperatorFailure) {
    progress.say(`berth: ${error.message}`);
    if (error.remedy !== undefined) {
      progress.say(`  ${error.remedy}`);
    }
    return;
  }
  progress.say(`berth: this is a bug: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
}
