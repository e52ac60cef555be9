import {
  END_USER_ID_CHARACTERS,
  IDEMPOTENCY_KEY,
  LIST_LIMIT,
  METRICS_WINDOW_SECONDS,
  NAME_CHARACTERS,
  SANDBOX_KEY_CHARACTERS,
} from '@berth/sdk/limits';
import { InvalidArgumentError } from 'commander';
import { durationSeconds, each, keyValue, textOf, wholeNumber } from '../program/option-values.ts';
import type { CommandSpec, GroupSpec, OptionSpec } from '../program/command-spec.ts';
import { OPTIONAL_SANDBOXES, SANDBOX } from '../program/sandbox-argument.ts';
import { egress, env, renew, resize, update } from './change-spec.ts';
import { execCommand } from './exec-spec.ts';
import { sandboxOptions } from './options.ts';

const ID = 'sbx_uodiunxlni4uyqmllemsqh4l';
const NO_WAIT: OptionSpec = { flags: '--no-wait', about: 'do not wait for completion' };
const SEVERAL =
  'Tries every sandbox and reports each failure; the exit code is 1 if any failed. ' +
  'With --json, prints one object per sandbox. ' +
  'Without names, acts on the sandboxes that match all filters and need the change: shows them on stderr and asks; ' +
  'without a terminal it requires --yes. Repeating it is safe.';
const SELECTION: readonly OptionSpec[] = [
  { flags: '--all', about: 'all sandboxes of the org, or of --project' },
  { flags: '--status <status>', about: 'those with this status; several: `a,b` or repeated', parse: each },
  { flags: '--metadata <key=value>', about: 'those with this label, repeatable', parse: keyValue },
  {
    flags: '--end-user <id>',
    about: 'those of this end user',
    parse: textOf(1, END_USER_ID_CHARACTERS),
    fields: ['endUserId'],
  },
  { flags: '--project <id>', about: 'those of this project; narrows names too' },
  { flags: '--yes', about: 'skip the confirmation' },
];

const create: CommandSpec = {
  name: 'create',
  summary: 'create a sandbox and wait until it is ready',
  details:
    'If stdout is not a terminal, only the id is printed. ' +
    'A failed clone of the repository is reported on stderr and does not change the exit code.',
  options: [
    ...sandboxOptions,
    {
      flags: '--idempotency-key <key>',
      about: 'unique key: repeating the command with it within a day returns the same sandbox',
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

const ensure: CommandSpec = {
  name: 'ensure',
  summary: 'wake the sandbox of a key or end user, or create it, and wait until it is ready',
  details:
    'Repeating the command, also at the same time, gives the same sandbox. Options that differ from its create are ' +
    'an error, except --name, --metadata and --idle-minutes. If stdout is not a terminal, only the id is printed.',
  options: [
    ...sandboxOptions,
    {
      flags: '--key <key>',
      about: 'unique key in the project (default: the end user)',
      parse: textOf(1, SANDBOX_KEY_CHARACTERS),
      fields: ['getOrCreate.key'],
    },
    NO_WAIT,
  ],
  examples: [
    'SB=$(berth sandbox ensure --end-user customer-7)',
    'berth sandbox ensure --key customer-7/tests --end-user customer-7 --size large',
  ],
  load: async () => (await import('./create.ts')).ensureSandbox,
};

const ls: CommandSpec = {
  name: 'ls',
  summary: 'list the sandboxes of the org',
  details:
    'With --watch, a terminal is updated in place; otherwise each change is a line, or a line of JSON with --json: ' +
    'added, changed or removed, and the sandbox. A use of a sandbox is no change.',
  options: [
    { flags: '--project <id>', about: 'only sandboxes of this project', fields: ['projectId'] },
    {
      flags: '--end-user <id>',
      about: 'only sandboxes of this end user',
      parse: textOf(1, END_USER_ID_CHARACTERS),
      fields: ['endUserId'],
    },
    {
      flags: '--status <status>',
      about: 'only sandboxes with this status, such as ready, stopped or failed; several: `a,b` or repeated',
      parse: each,
    },
    {
      flags: '--search <text>',
      about: 'only sandboxes whose name contains this, or whose id begins with it',
      parse: textOf(1, NAME_CHARACTERS),
      fields: ['q'],
    },
    { flags: '--metadata <key=value>', about: 'only sandboxes with this label, repeatable', parse: keyValue },
    {
      flags: '--sort <order>',
      about: 'order; - is descending (default: -createdAt)',
      choices: ['createdAt', '-createdAt', 'lastActiveAt', '-lastActiveAt'],
    },
    {
      flags: '--limit <n>',
      about: 'maximum number of sandboxes (default: all)',
      parse: wholeNumber(1, LIST_LIMIT.max),
    },
    { flags: '-q, --quiet', about: 'print only ids, one per line' },
    { flags: '-w, --watch', about: 'show the list and its changes until Ctrl-C' },
    { flags: '--interval <seconds>', about: 'interval of --watch (default: 2)', parse: wholeNumber(1, 3_600) },
  ],
  examples: [
    'berth sandbox ls',
    "berth sandbox ls --end-user customer-7 --json | jq -r '.sandboxes[].id'",
    'berth sandbox ls --status running --status ready --sort -lastActiveAt',
    'berth exec $(berth sandbox ls --search worker --limit 1 --quiet) -- uptime',
    'berth sandbox ls --watch --end-user customer-7',
  ],
  load: async () => (await import('./ls.ts')).listSandboxes,
};

const get: CommandSpec = {
  name: 'get',
  summary: 'show a sandbox, including a deleted one',
  arguments: [SANDBOX],
  examples: [`berth sandbox get ${ID}`, `berth sandbox get ${ID} --json | jq -r .sandbox.status`],
  load: async () => (await import('./get.ts')).getSandbox,
};

const sleep: CommandSpec = {
  name: 'sleep',
  summary: 'put sandboxes to sleep, keeping memory and disk; destroys ephemeral sandboxes',
  details: SEVERAL,
  arguments: [OPTIONAL_SANDBOXES],
  options: [...SELECTION, NO_WAIT],
  examples: [`berth sandbox sleep ${ID}`, 'berth sandbox sleep --end-user customer-7'],
  load: async () => (await import('./transition.ts')).sleepSandboxes,
};

const wake: CommandSpec = {
  name: 'wake',
  summary: 'wake sandboxes, restoring their processes',
  details: SEVERAL,
  arguments: [OPTIONAL_SANDBOXES],
  options: [...SELECTION, NO_WAIT],
  examples: [`berth sandbox wake ${ID}`, 'berth sandbox wake --metadata team=blue --yes'],
  load: async () => (await import('./transition.ts')).wakeSandboxes,
};

const rm: CommandSpec = {
  name: 'rm',
  summary: 'delete sandboxes permanently; deleting a deleted sandbox succeeds',
  details: SEVERAL,
  arguments: [OPTIONAL_SANDBOXES],
  options: [...SELECTION, NO_WAIT],
  examples: [`berth sandbox rm ${ID}`, 'berth sandbox rm --status failed', 'berth sandbox rm --all --yes'],
  load: async () => (await import('./transition.ts')).removeSandboxes,
};

function useFor(typed: string): never {
  throw new InvalidArgumentError(`Use --for ${/^[a-z]+$/.test(typed) ? typed : 'STATE'}.`);
}

const wait: CommandSpec = {
  name: 'wait',
  summary: 'wait until a sandbox has a status, or its repository is cloned',
  details:
    'A ready sandbox is also running. A settled sandbox is awaited too: another caller may wake it. ' +
    'Exit codes: 0 when reached; 8 if it failed, was deleted or settled elsewhere, or has nothing to clone; ' +
    '124 after the timeout.',
  arguments: [SANDBOX],
  options: [
    {
      flags: '--for <state>',
      about: 'state to wait for',
      choices: ['ready', 'running', 'stopped', 'deleted', 'clone'],
      default: 'ready',
    },
    {
      flags: '--timeout <time>',
      about: 'longest wait, in seconds or as 10m',
      parse: durationSeconds(1, 86_400),
      default: 300,
    },
    { flags: '--status <status>', about: 'see --for', parse: useFor, hidden: true },
  ],
  examples: [`berth sandbox wait ${ID} --for clone --timeout 10m`, `berth sandbox wait ${ID} --for stopped`],
  load: async () => (await import('./wait.ts')).waitForSandbox,
};

const metrics: CommandSpec = {
  name: 'metrics',
  summary: 'show the current resource usage of a sandbox',
  details:
    'With --watch, a terminal is updated in place; otherwise each update is a line, or a JSON object with --json. ' +
    'Stops on Ctrl-C, or when the sandbox is no longer awake. --history also works while the sandbox sleeps, and ' +
    'wakes nothing; a gap is a line of dashes.',
  arguments: [SANDBOX],
  options: [
    { flags: '-w, --watch', about: 'update continuously' },
    { flags: '--interval <seconds>', about: 'interval of --watch (default: 2)', parse: wholeNumber(1, 3_600) },
    { flags: '--count <n>', about: 'stop --watch after this many updates', parse: wholeNumber(1, 1_000_000) },
    {
      flags: '--history <period>',
      about: 'show the usage in the last period, such as 10m or 24h, at most a day',
      parse: durationSeconds(METRICS_WINDOW_SECONDS.min, METRICS_WINDOW_SECONDS.max),
      fields: ['windowSeconds'],
    },
    { flags: '--sample', about: 'store a sample, and show the recommended size' },
  ],
  examples: [
    `berth sandbox metrics ${ID}`,
    `berth sandbox metrics ${ID} --watch`,
    `berth sandbox metrics ${ID} --history 1h`,
    `berth sandbox metrics ${ID} --sample`,
  ],
  load: async () => (await import('./metrics.ts')).sandboxMetrics,
};

export const sandboxGroup: GroupSpec = {
  name: 'sandbox',
  alias: 'sb',
  summary: 'create, inspect, update and delete sandboxes',
  commands: [create, ensure, ls, get, update, execCommand, wait, sleep, wake, resize, egress, env, renew, rm, metrics],
};
