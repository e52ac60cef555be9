// `berth exec` and `berth run`, with their common options.
import { PROCESS_LIMITS } from '@berth/sdk/command-limits';
import { EXEC_LIMITS } from '@berth/sdk/limits';
import { InvalidArgumentError } from 'commander';
import { textOf, variable, wholeNumber } from '../program/option-values.ts';
import type { CommandSpec, OptionSpec } from '../program/command-spec.ts';
import { SANDBOX } from '../program/sandbox-argument.ts';
import { sandboxOptions } from './options.ts';

const ATTACH: readonly OptionSpec[] = [
  { flags: '-i, --interactive', about: 'pass stdin to the command, and stream its output' },
  { flags: '-t, --tty', about: 'allocate a terminal' },
];

const PROGRAM: readonly OptionSpec[] = [
  { flags: '-w, --cwd <directory>', about: 'working directory (default: /code)' },
  {
    flags: '-e, --env <name=value>',
    about: 'environment variable; repeatable; NAME alone takes the value from here',
    parse: variable,
  },
  { flags: '-u, --user <name>', about: 'user of the sandbox that runs the command, such as root' },
];

const { min, max, default: usual } = EXEC_LIMITS.timeoutSeconds;
const { nameCharacters, limitSeconds: longest } = PROCESS_LIMITS;

/** The action checks the limit without -d. */
function timeout(typed: string): number {
  try {
    return wholeNumber(min, longest)(typed);
  } catch {
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}, with -d to ${longest}.`);
  }
}

export const execCommand: CommandSpec = {
  name: 'exec',
  summary: 'run a command in a sandbox',
  details: `The command runs in /code as the user of the sandbox. A single word is passed to /bin/sh as shell
text; several words are passed as exact arguments.

Without -i and -t, output is printed when the command exits, truncated to its end. With -i or -t,
output streams without limits of time or size, and signals are forwarded to the command. A second
Ctrl-C, a lost connection or a closed stdout kills the command.

With -d, the command outlives berth, its connection and a sleep of the sandbox: berth prints the id
of its process and exits. berth ps lists processes, berth logs prints their output, berth attach
connects to them, and berth kill ends them. With -i, input is written later; without, it is empty.

Exit code: that of the command; 128 + n if signal n killed it; 124 after a timeout; 125 if Berth
failed.`,
  arguments: [SANDBOX, { name: '<command...>', about: 'command, preferably after --', fields: ['command', 'argv'] }],
  options: [
    ...ATTACH,
    { flags: '-d, --detach', about: 'start the command, and print the id of its process' },
    {
      flags: '--name <name>',
      about: `with -d: name of the process, at most ${nameCharacters} characters; need not be unique`,
      parse: textOf(1, nameCharacters),
    },
    { flags: '--keep-awake', about: 'with -d: the sandbox stays awake while the process runs' },
    {
      flags: '--timeout-seconds <n>',
      about: `timeout of the command, ${min} to ${max} (default: ${usual}); with -d to ${longest} (default: none)`,
      parse: timeout,
    },
    ...PROGRAM,
  ],
  examples: [
    'berth exec sbx_uodiunxlni4uyqmllemsqh4l -- python3 hello.py',
    "berth exec sbx_uodiunxlni4uyqmllemsqh4l 'npm ci && npm test | tail'",
    'berth exec -w app -e NODE_ENV=test sbx_uodiunxlni4uyqmllemsqh4l -- npm test',
    'berth exec -it -u root sbx_uodiunxlni4uyqmllemsqh4l -- bash',
    'berth exec -i sbx_uodiunxlni4uyqmllemsqh4l -- psql < schema.sql',
    'berth exec -d --name web sbx_uodiunxlni4uyqmllemsqh4l -- npm start',
  ],
  passThrough: true,
  failureExit: 125,
  load: async () => (await import('../commands/exec.ts')).exec,
};

export const runCommand: CommandSpec = {
  name: 'run',
  summary: 'create a sandbox, run a command in it, and destroy the sandbox',
  details: `The command runs as with berth exec -i: output streams, signals are forwarded, and berth exits with
its exit code. Without -i, its stdin is empty.

The sandbox is destroyed when the command exits or fails, on a second Ctrl-C, and on a lost
connection. Another Ctrl-C during the destroy skips the wait and prints the id of the sandbox. With
--ttl-seconds, the service destroys the sandbox by itself; the project must have --use-case external
(berth project create, berth project update).`,
  arguments: [{ name: '<command...>', about: 'command, preferably after --', fields: ['command', 'argv'] }],
  options: [...ATTACH, ...PROGRAM, { flags: '--keep', about: 'keep the sandbox, and print its id' }, ...sandboxOptions],
  examples: [
    'berth run -- uname -a',
    "berth run --size large --repository acme/app -- 'npm ci && npm test'",
    'berth run -it -- bash',
    'tar c . | berth run -i --ttl-seconds 30m -- sh -c "tar x && make"',
  ],
  passThrough: true,
  json: false,
  failureExit: 125,
  load: async () => (await import('./run.ts')).run,
};
