// `berth preview`.
import { END_USER_ID_CHARACTERS, PREVIEW_LABEL_CHARACTERS, PREVIEW_SECONDS } from '@berth/sdk/limits';
import { durationSeconds, textOf } from '../program/option-values.ts';
import type { CommandSpec, GroupSpec } from '../program/command-spec.ts';

const ID = 'sbx_uodiunxlni4uyqmllemsqh4l';
const LINK = 'prv_4hgk2f6z5uq3vw7xjn2mtdra';
const SANDBOX = { name: '<sandbox>', about: 'id of the sandbox' };

const create: CommandSpec = {
  name: 'create',
  summary: 'make a link to a port of a sandbox, and print it',
  details:
    'A team link opens for signed-in members of the org; it is not stored, so that it is not in the list and cannot be taken back. A public link opens for whoever has it.',
  arguments: [SANDBOX, { name: '<port>', about: 'port that an app in it listens on' }],
  options: [
    { flags: '--audience <audience>', about: 'for whom it opens', choices: ['team', 'public'], default: 'team' },
    {
      flags: '--expires-in <time>',
      about: 'how long it is good for: seconds, or as 2h or 7d (default: 1d)',
      parse: durationSeconds(PREVIEW_SECONDS.min, PREVIEW_SECONDS.max),
    },
    { flags: '--label <text>', about: 'what it is for', parse: textOf(1, PREVIEW_LABEL_CHARACTERS) },
    { flags: '--end-user <id>', about: 'whom of your own users it is for', parse: textOf(1, END_USER_ID_CHARACTERS) },
  ],
  examples: [
    `berth preview create ${ID} 3000`,
    `berth preview create ${ID} 3000 --audience public --expires-in 7d --label demo`,
  ],
  load: async () => (await import('./create.ts')).createPreview,
};

const ls: CommandSpec = {
  name: 'ls',
  summary: 'list the public links to a sandbox that still open, newest first',
  arguments: [SANDBOX],
  examples: [`berth preview ls ${ID}`],
  load: async () => (await import('./ls.ts')).listPreviews,
};

const rm: CommandSpec = {
  name: 'rm',
  summary: 'revoke public links: they open nothing any more, within seconds',
  details: 'All that are named are tried; the exit code is 1 if any failed. Revoking one again is fine.',
  arguments: [SANDBOX, { name: '<links...>', about: 'ids of links' }],
  examples: [`berth preview rm ${ID} ${LINK}`],
  load: async () => (await import('./rm.ts')).removePreviews,
};

const open: CommandSpec = {
  name: 'open',
  summary: 'open a link to a sandbox in the browser, or print it where there is none',
  arguments: [
    SANDBOX,
    { name: '<port-or-link>', about: 'a port, to which a team link is made, or the id of a public link' },
  ],
  examples: [`berth preview open ${ID} 3000`, `berth preview open ${ID} ${LINK}`],
  load: async () => (await import('./open.ts')).openPreview,
};

export const previewGroup: GroupSpec = {
  name: 'preview',
  summary: 'links that show a port of a sandbox in the browser',
  commands: [create, ls, rm, open],
};
