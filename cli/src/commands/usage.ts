// `berth usage`.
import { END_USER_ID_CHARACTERS } from '@berth/contract/limits.ts';
import { hoursOrNone, textOf } from '../option-values.ts';
import type { CommandSpec, GroupSpec } from '../spec.ts';

const show: CommandSpec = {
  name: 'show',
  default: true,
  summary: 'machine hours of the present billing period against the cap; what `berth usage` alone does',
  options: [
    { flags: '--project <id>', about: 'only of this project, against its own cap' },
    { flags: '--end-user <id>', about: 'only of this end user of yours', parse: textOf(1, END_USER_ID_CHARACTERS) },
  ],
  examples: ['berth usage', 'berth usage --end-user customer-7', 'berth usage --json | jq .remainingMachineHours'],
  load: async () => (await import('../actions/usage-show.ts')).showUsage,
};

const endUsers: CommandSpec = {
  name: 'end-users',
  summary: 'machine hours of each of your end users in the present billing period, most first',
  examples: ['berth usage end-users', "berth usage end-users --json | jq -r '.endUsers[0].endUserId'"],
  load: async () => (await import('../actions/usage-end-users.ts')).listEndUserUsage,
};

const caps: CommandSpec = {
  name: 'caps',
  summary: 'show the caps on machine hours, or set them as an admin of the org',
  details:
    'With --limit or --overage it sets what is named and leaves the rest as it is. That needs a person: a profile that signed in, and no API key.',
  options: [
    { flags: '--project <id>', about: "the project's own cap instead of the org's" },
    { flags: '--limit <hours>', about: 'machine hours in a billing period, or none', parse: hoursOrNone },
    { flags: '--overage <on|off>', about: 'whether work goes on beyond the cap of the org', choices: ['on', 'off'] },
  ],
  examples: [
    'berth usage caps',
    'berth usage caps --limit 500 --overage off',
    'berth usage caps --project prj_w4ya6jx2tq7bn5rkz3mdvhce --limit none',
  ],
  load: async () => (await import('../actions/usage-caps.ts')).usageCaps,
};

export const usageGroup: GroupSpec = {
  name: 'usage',
  summary: 'machine hours, what they are capped at, and your end users',
  commands: [show, endUsers, caps],
};
