// `berth sandbox`.
import { END_USER_ID_CHARACTERS, IDEMPOTENCY_KEY, LIST_LIMIT } from '@berth/sdk/limits';
import { textOf, wholeNumber } from '../program/option-values.ts';
import type { CommandSpec, GroupSpec, OptionSpec } from '../program/command-spec.ts';
import { execCommand } from './exec-spec.ts';
import { sandboxOptions } from './options.ts';

const ID = 'sbx_uodiunxlni4uyqmllemsqh4l';
const SANDBOX = { name: '<sandbox>', about: 'id of the sandbox' };
const SANDBOXES = { name: '<sandboxes...>', about: 'ids of sandboxes' };
const NO_WAIT: OptionSpec = { flags: '--no-wait', about: 'answer at once, while it is still under way' };
const SEVERAL =
  'All that are named are tried; each failure is told with its id, and the exit code is 1 if any failed. With --json each answer follows the one before.';

const create: CommandSpec = {
  name: 'create',
  summary: 'make a sandbox and wait until it can be used, its repository cloned',
  details:
    'Where stdout is no terminal its last line is the id, alone. A repository that cannot be cloned is told on stderr and is no failure: the sandbox is there.',
  options: [
    ...sandboxOptions,
    {
      flags: '--idempotency-key <key>',
      about: 'made up by you: the same command with it, given again within a day, gives the first sandbox',
      parse: textOf(1, IDEMPOTENCY_KEY.maxCharacters),
    },
    NO_WAIT,
  ],
  examples: [
    'berth sandbox create --size medium',
    'SB=$(berth sandbox create --repository acme/app --ssh-key ~/.ssh/id_ed25519.pub)',
    'berth sandbox create --ttl-seconds 2h --end-user customer-7 --metadata plan=trial --metadata team=blue',
  ],
  load: async () => (await import('./create.ts')).createSandbox,
};

const ls: CommandSpec = {
  name: 'ls',
  summary: 'list the sandboxes of the org, newest first',
  options: [
    { flags: '--project <id>', about: 'only those of this project' },
    {
      flags: '--end-user <id>',
      about: 'only those of this end user of yours',
      parse: textOf(1, END_USER_ID_CHARACTERS),
    },
    { flags: '--status <status>', about: 'only those with this status, as ready, stopped or failed' },
    { flags: '--limit <n>', about: 'at most so many (default: all)', parse: wholeNumber(1, LIST_LIMIT.max) },
    { flags: '-q, --quiet', about: 'ids alone, one to a line' },
  ],
  examples: [
    'berth sandbox ls',
    "berth sandbox ls --end-user customer-7 --json | jq -r '.sandboxes[].id'",
    'berth sandbox rm $(berth sandbox ls --status failed --quiet)',
  ],
  load: async () => (await import('./ls.ts')).listSandboxes,
};

const get: CommandSpec = {
  name: 'get',
  summary: 'show a sandbox, a deleted one too',
  arguments: [SANDBOX],
  examples: [`berth sandbox get ${ID}`, `berth sandbox get ${ID} --json | jq -r .sandbox.status`],
  load: async () => (await import('./get.ts')).getSandbox,
};

const sleep: CommandSpec = {
  name: 'sleep',
  summary: 'put sandboxes to sleep with their memory, and release their machines; an ephemeral one ends',
  details: SEVERAL,
  arguments: [SANDBOXES],
  options: [NO_WAIT],
  examples: [`berth sandbox sleep ${ID}`],
  load: async () => (await import('./transition.ts')).sleepSandboxes,
};

const wake: CommandSpec = {
  name: 'wake',
  summary: 'wake sandboxes with all their processes',
  details: SEVERAL,
  arguments: [SANDBOXES],
  options: [NO_WAIT],
  examples: [`berth sandbox wake ${ID}`],
  load: async () => (await import('./transition.ts')).wakeSandboxes,
};

const rm: CommandSpec = {
  name: 'rm',
  summary: 'delete sandboxes for good: machine, disk and memory. One that is deleted already is fine',
  details: SEVERAL,
  arguments: [SANDBOXES],
  options: [NO_WAIT],
  examples: [`berth sandbox rm ${ID}`, 'berth sandbox rm $(berth sandbox ls --end-user customer-7 --quiet)'],
  load: async () => (await import('./transition.ts')).removeSandboxes,
};

const resize: CommandSpec = {
  name: 'resize',
  summary: 'set the size of a sandbox: what is not named stays as it is',
  details:
    'What can be changed while it is awake is in force at once; the rest, and whatever is to be less, at its next wake. A disk only grows.',
  arguments: [SANDBOX],
  options: [
    { flags: '--vcpu <n>', about: 'virtual CPUs', parse: wholeNumber(1, 1_024) },
    { flags: '--memory-gb <n>', about: 'memory in GB', parse: wholeNumber(1, 65_536) },
    { flags: '--disk-gb <n>', about: 'disk in GB', parse: wholeNumber(1, 1_048_576) },
  ],
  examples: [`berth sandbox resize ${ID} --vcpu 4 --memory-gb 8`],
  load: async () => (await import('./resize.ts')).resizeSandbox,
};

const renew: CommandSpec = {
  name: 'renew',
  summary: 'extend the expiry of an ephemeral sandbox by its time to live',
  arguments: [SANDBOX],
  examples: [`berth sandbox renew ${ID}`],
  load: async () => (await import('./renew.ts')).renewSandbox,
};

const metrics: CommandSpec = {
  name: 'metrics',
  summary: 'show what a sandbox uses at this moment',
  details:
    'With --watch the figures of a terminal are renewed in place; elsewhere each look is a line (with --json an answer of the API). Ends with Ctrl-C, or when it is not awake any more.',
  arguments: [SANDBOX],
  options: [
    { flags: '-w, --watch', about: 'look again and again' },
    { flags: '--interval <seconds>', about: 'between two looks of --watch (default: 2)', parse: wholeNumber(1, 3_600) },
    { flags: '--count <n>', about: 'end --watch after so many looks', parse: wholeNumber(1, 1_000_000) },
    { flags: '--sample', about: 'note a sample, and show the size that is recommended' },
  ],
  examples: [
    `berth sandbox metrics ${ID}`,
    `berth sandbox metrics ${ID} --watch`,
    `berth sandbox metrics ${ID} --sample`,
  ],
  load: async () => (await import('./metrics.ts')).sandboxMetrics,
};

export const sandboxGroup: GroupSpec = {
  name: 'sandbox',
  alias: 'sb',
  summary: 'make sandboxes, look at them, change and end them',
  commands: [create, ls, get, execCommand, sleep, wake, resize, renew, rm, metrics],
};
