// `berth exec` and `berth run`, and the options that both have.
import { EXEC_LIMITS } from '@berth/sdk/limits';
import { wholeNumber } from '../program/option-values.ts';
import type { CommandSpec, OptionSpec } from '../program/command-spec.ts';
import { sandboxOptions } from './options.ts';

const ATTACH: readonly OptionSpec[] = [
  { flags: '-i, --interactive', about: 'stdin is passed on, its end too, and output comes as it is written' },
  { flags: '-t, --tty', about: 'the command has a terminal, which is this one' },
];

const { min, max, default: usual } = EXEC_LIMITS.timeoutSeconds;

export const execCommand: CommandSpec = {
  name: 'exec',
  summary: 'run a command in a sandbox',
  details: `It runs in /code, as the user of the sandbox. One word is text for its /bin/sh; several are quoted, so that exactly these arguments arrive.

Without -i and -t its output is given when it has ended, the end of it at most. With them it streams, without a bound in time or size; signals to
berth reach the command, a second one that asks it to end leaves it, and whoever leaves ends it: Ctrl-C, a lost connection, a reader that has gone.

Exit code: the command's own; 128 + n when signal n ended it; 124 when its time was up; 125 for whatever failed in Berth.`,
  arguments: [
    { name: '<sandbox>', about: 'id of the sandbox' },
    { name: '<command...>', about: 'the command, best behind --' },
  ],
  options: [
    ...ATTACH,
    {
      flags: '--timeout-seconds <n>',
      about: `how long it may run, ${min} to ${max}; it is ended after that (default: ${usual})`,
      parse: wholeNumber(min, max),
    },
  ],
  examples: [
    'berth exec sbx_uodiunxlni4uyqmllemsqh4l -- python3 hello.py',
    "berth exec sbx_uodiunxlni4uyqmllemsqh4l 'npm ci && npm test | tail'",
    'berth exec -it sbx_uodiunxlni4uyqmllemsqh4l -- vim hello.py',
    'berth exec -i sbx_uodiunxlni4uyqmllemsqh4l -- psql < schema.sql',
  ],
  passThrough: true,
  failureExit: 125,
  load: async () => (await import('../commands/exec.ts')).exec,
};

export const runCommand: CommandSpec = {
  name: 'run',
  summary: 'make a sandbox, run a command in it, and destroy it',
  details: `The command is taken, runs and ends as with berth exec -i: its output streams, signals reach it, and its exit code is that of berth. Without -i it finds
the end of its input.

The sandbox is destroyed whatever happens: when the command ends, fails, or is left, by a second Ctrl-C or a lost connection. One more Ctrl-C while
that is under way does not wait for it, and names the sandbox that may be left. --ttl-seconds makes one that ends by itself, whatever becomes of
this machine, where its project allows that.`,
  arguments: [{ name: '<command...>', about: 'the command, best behind --' }],
  options: [...ATTACH, { flags: '--keep', about: 'leave the sandbox, and say its id' }, ...sandboxOptions],
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
