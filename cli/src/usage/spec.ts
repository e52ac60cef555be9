// `berth usage`.
import { END_USER_ID_CHARACTERS } from '@berth/sdk/limits';
import { textOf } from '../program/option-values.ts';
import type { CommandSpec, GroupSpec } from '../program/command-spec.ts';

const show: CommandSpec = {
  name: 'show',
  default: true,
  summary: 'machine hours of the present billing period against the cap; what `berth usage` alone does',
  details: 'berth org caps and berth project caps set the caps.',
  options: [
    { flags: '--project <id>', about: 'only of this project, against its own cap' },
    { flags: '--end-user <id>', about: 'only of this end user of yours', parse: textOf(1, END_USER_ID_CHARACTERS) },
  ],
  examples: ['berth usage', 'berth usage --end-user customer-7', 'berth usage --json | jq .remainingMachineHours'],
  load: async () => (await import('./show.ts')).showUsage,
};

const endUsers: CommandSpec = {
  name: 'end-users',
  summary: 'machine hours of each of your end users in the present billing period, most first',
  examples: ['berth usage end-users', "berth usage end-users --json | jq -r '.endUsers[0].endUserId'"],
  load: async () => (await import('./end-users.ts')).listEndUserUsage,
};

export const usageGroup: GroupSpec = {
  name: 'usage',
  summary: 'machine hours of the org, and of your end users',
  commands: [show, endUsers],
};
