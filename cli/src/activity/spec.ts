import { ACTIVITY_EXPORT, LIST_LIMIT } from '@berth/sdk/limits';
import { wholeNumber } from '../program/option-values.ts';
import type { CommandSpec } from '../program/command-spec.ts';

export const activityCommand: CommandSpec = {
  name: 'activity',
  summary: 'show the activity of the org, newest first',
  details:
    'With --follow, the latest entries are printed oldest first, then each new entry once. ' +
    'With --json --follow, each entry is a line of JSON. ' +
    'With --json --all, each page of the API is a JSON object. ' +
    'With --export, all entries are printed as lines of JSON, oldest first. ' +
    'An export continues after the cursor of its last line; ' +
    `entries of the last ${ACTIVITY_EXPORT.delaySeconds / 60} minutes come with a later one.`,
  options: [
    { flags: '--limit <n>', about: 'maximum number of entries (default: 20)', parse: wholeNumber(1, LIST_LIMIT.max) },
    { flags: '--all', about: 'show all entries' },
    { flags: '-f, --follow', about: 'keep printing new entries until Ctrl-C' },
    { flags: '--export', about: 'print all entries as NDJSON, oldest first' },
    { flags: '--after <cursor>', about: 'continue an export behind this cursor' },
    { flags: '--kind <kind>', about: 'only entries of this kind, such as sandbox_created' },
    { flags: '--sandbox <sandbox>', about: 'only entries of this sandbox', fields: ['sandboxId'] },
    { flags: '--project <id>', about: 'only entries of this project' },
  ],
  examples: [
    'berth activity',
    'berth activity --sandbox sbx_uodiunxlni4uyqmllemsqh4l --all',
    'berth activity --follow --kind sandbox_failed',
    "berth activity --limit 100 --json | jq -r '.activity[].kind'",
    'berth activity --export > activity.ndjson',
    'berth activity --export --after CURSOR >> activity.ndjson # CURSOR: of the last line exported',
  ],
  load: async () => (await import('./activity.ts')).showActivity,
};
