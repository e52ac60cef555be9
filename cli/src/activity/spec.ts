// `berth activity`.
import { LIST_LIMIT } from '@berth/sdk/limits';
import { wholeNumber } from '../program/option-values.ts';
import type { CommandSpec } from '../program/command-spec.ts';

export const activityCommand: CommandSpec = {
  name: 'activity',
  summary: 'show what happened in the org, newest first',
  details:
    'With --follow the latest come first in the order of time, then each as it happens: none twice, none left out. With --json --follow each entry is a line; with --json --all each page of the API follows the one before.',
  options: [
    { flags: '--limit <n>', about: 'how many (default: 20)', parse: wholeNumber(1, LIST_LIMIT.max) },
    { flags: '--all', about: 'everything there is' },
    { flags: '-f, --follow', about: 'stay, and show what happens until Ctrl-C' },
    {
      flags: '--interval <seconds>',
      about: 'between two looks of --follow (default: 2)',
      parse: wholeNumber(1, 3_600),
    },
    { flags: '--kind <kind>', about: 'only of this kind, as sandbox_created' },
    { flags: '--sandbox <id>', about: 'only of this sandbox' },
    { flags: '--project <id>', about: 'only of this project' },
  ],
  examples: [
    'berth activity',
    'berth activity --sandbox sbx_uodiunxlni4uyqmllemsqh4l --all',
    'berth activity --follow --kind sandbox_failed',
    "berth activity --limit 100 --json | jq -r '.activity[].kind'",
  ],
  load: async () => (await import('./activity.ts')).showActivity,
};
