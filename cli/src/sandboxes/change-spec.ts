// Commands that change a sandbox.
import { IDLE_MINUTES, NAME_CHARACTERS } from '@berth/sdk/limits';
import { each, keyValue, textOf, wholeNumber, wholeNumberOrNone } from '../program/option-values.ts';
import type { CommandSpec } from '../program/command-spec.ts';
import { SANDBOX } from '../program/sandbox-argument.ts';
import { EGRESS_ABOUT } from './egress.ts';

const ID = 'sbx_uodiunxlni4uyqmllemsqh4l';

export const resize: CommandSpec = {
  name: 'resize',
  summary: 'change the size of a sandbox',
  details:
    'An awake sandbox grows immediately if possible. ' +
    'Other changes, and any decrease, take effect at its next wake. A disk can only grow.',
  arguments: [SANDBOX],
  options: [
    { flags: '--vcpu <n>', about: 'virtual CPUs', parse: wholeNumber(1, 1_024) },
    { flags: '--memory-gb <n>', about: 'memory in GB', parse: wholeNumber(1, 65_536) },
    { flags: '--disk-gb <n>', about: 'disk in GB', parse: wholeNumber(1, 1_048_576) },
  ],
  examples: [`berth sandbox resize ${ID} --vcpu 4 --memory-gb 8`],
  load: async () => (await import('./resize.ts')).resizeSandbox,
};

export const update: CommandSpec = {
  name: 'update',
  summary: 'change name, labels or idle time of a sandbox',
  arguments: [SANDBOX],
  options: [
    { flags: '--name <name>', about: 'new name', parse: textOf(1, NAME_CHARACTERS) },
    { flags: '--metadata <key=value>', about: 'label to set, repeatable; other labels stay', parse: keyValue },
    { flags: '--unset <key>', about: 'label to remove, repeatable', parse: each },
    {
      flags: '--idle-minutes <n>',
      about: "minutes without use until it sleeps; 0: never; none: the project's",
      parse: wholeNumberOrNone(IDLE_MINUTES.min, IDLE_MINUTES.max),
    },
  ],
  examples: [
    `berth sandbox update ${ID} --metadata plan=paid --unset trial`,
    `berth sandbox update ${ID} --idle-minutes 60`,
  ],
  load: async () => (await import('./update.ts')).updateSandbox,
};

export const egress: CommandSpec = {
  name: 'egress',
  summary: 'set the destinations that a sandbox may contact',
  details:
    'Takes effect at once in an awake sandbox, and ends its connections that the policy forbids. ' +
    'Private and special ranges are always closed.',
  arguments: [SANDBOX, { name: '<policy>', about: EGRESS_ABOUT, fields: [''] }],
  examples: [`berth sandbox egress ${ID} none`, `berth sandbox egress ${ID} 'github.com,*.npmjs.org,:443'`],
  load: async () => (await import('./egress.ts')).setEgress,
};

export const env: CommandSpec = {
  name: 'env',
  summary: 'set, unset or list the environment variables of a sandbox',
  details:
    'Programs that start afterwards get them: commands, processes, terminals and agents, not ssh. set reads the ' +
    'value of a NAME without = from stdin, or prompts for it. Nobody can read a value back. A sleeping sandbox stays ' +
    'asleep.',
  arguments: [
    { name: '<action>', about: 'what to do', choices: ['set', 'unset', 'ls'] },
    SANDBOX,
    { name: '[variables...]', about: 'NAME=VALUE or NAME for set, NAME for unset' },
  ],
  options: [
    { flags: '--from-file <path>', about: 'set the variables of a .env file; - is stdin' },
    { flags: '--replace', about: 'set: remove all other variables' },
  ],
  examples: [
    `berth sandbox env set ${ID} DATABASE_URL < url.txt`,
    `berth sandbox env set ${ID} MODE=production PORT=8080`,
    `berth sandbox env set ${ID} --from-file .env --replace`,
    `berth sandbox env unset ${ID} MODE`,
    `berth sandbox env ls ${ID}`,
  ],
  load: async () => (await import('./env.ts')).sandboxEnv,
};

export const renew: CommandSpec = {
  name: 'renew',
  summary: 'extend the expiry of an ephemeral sandbox by its time to live',
  arguments: [SANDBOX],
  examples: [`berth sandbox renew ${ID}`],
  load: async () => (await import('./renew.ts')).renewSandbox,
};
