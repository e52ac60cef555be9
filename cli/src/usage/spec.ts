import { END_USER_ID_CHARACTERS, USAGE_DAYS } from '@berth/sdk/limits';
import { textOf, wholeNumber } from '../program/option-values.ts';
import type { CommandSpec, GroupSpec } from '../program/command-spec.ts';

const show: CommandSpec = {
  name: 'show',
  default: true,
  summary: 'show the machine hours of this billing period and the cap (default)',
  details: 'Set caps with berth org caps and berth project caps.',
  options: [
    { flags: '--project <id>', about: 'only usage of this project, with its own cap' },
    {
      flags: '--end-user <id>',
      about: 'only usage of this end user',
      parse: textOf(1, END_USER_ID_CHARACTERS),
      fields: ['endUserId'],
    },
  ],
  examples: ['berth usage', 'berth usage --end-user customer-7', 'berth usage --json | jq .remainingMachineHours'],
  load: async () => (await import('./show.ts')).showUsage,
};

const daily: CommandSpec = {
  name: 'daily',
  summary: 'show the machine hours of each day in UTC, oldest first',
  options: [
    {
      flags: '--days <n>',
      about: `number of days up to today (default: ${USAGE_DAYS.default})`,
      parse: wholeNumber(USAGE_DAYS.min, USAGE_DAYS.max),
    },
    { flags: '--project <id>', about: 'only usage of this project' },
    {
      flags: '--end-user <id>',
      about: 'only usage of this end user',
      parse: textOf(1, END_USER_ID_CHARACTERS),
      fields: ['endUserId'],
    },
  ],
  examples: ['berth usage daily', 'berth usage daily --days 7 --end-user customer-7'],
  load: async () => (await import('./daily.ts')).showDailyUsage,
};

const endUsers: CommandSpec = {
  name: 'end-users',
  summary: 'show the machine hours of each end user in this billing period, highest first',
  examples: ['berth usage end-users', "berth usage end-users --json | jq -r '.endUsers[0].endUserId'"],
  load: async () => (await import('./end-users.ts')).listEndUserUsage,
};

export const usageGroup: GroupSpec = {
  name: 'usage',
  summary: 'show machine hours of the org and its end users',
  commands: [show, daily, endUsers],
};
