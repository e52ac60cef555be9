import { END_USER_ID_CHARACTERS, PREVIEW_LABEL_CHARACTERS, PREVIEW_SECONDS } from '@berth/sdk/limits';
import { durationSeconds, textOf } from '../program/option-values.ts';
import type { CommandSpec, GroupSpec } from '../program/command-spec.ts';
import { SANDBOX } from '../program/sandbox-argument.ts';

const ID = 'sbx_uodiunxlni4uyqmllemsqh4l';
const LINK = 'prv_4hgk2f6z5uq3vw7xjn2mtdra';

const create: CommandSpec = {
  name: 'create',
  summary: 'create a link to a port of a sandbox, and print it',
  details:
    'Signed-in members of the org can open a team link. ' +
    'It is not stored, so it is not listed and cannot be revoked. Anyone with the URL can open a public link.',
  arguments: [SANDBOX, { name: '<port>', about: 'port in the sandbox' }],
  options: [
    { flags: '--audience <audience>', about: 'who can open the link', choices: ['team', 'public'], default: 'team' },
    {
      flags: '--expires-in <time>',
      about: 'lifetime in seconds, or as 2h or 7d (default: 1d)',
      parse: durationSeconds(PREVIEW_SECONDS.min, PREVIEW_SECONDS.max),
      fields: ['expiresInSeconds'],
    },
    { flags: '--embeddable', about: 'let pages of other origins show the app in a frame' },
    { flags: '--label <text>', about: 'display name', parse: textOf(1, PREVIEW_LABEL_CHARACTERS) },
    {
      flags: '--end-user <id>',
      about: 'id of your end user',
      parse: textOf(1, END_USER_ID_CHARACTERS),
      fields: ['endUserId'],
    },
  ],
  examples: [
    `berth preview create ${ID} 3000`,
    `berth preview create ${ID} 3000 --audience public --expires-in 7d --label demo`,
  ],
  load: async () => (await import('./create.ts')).createPreview,
};

const ls: CommandSpec = {
  name: 'ls',
  summary: 'list the active public links to a sandbox, newest first',
  arguments: [SANDBOX],
  examples: [`berth preview ls ${ID}`],
  load: async () => (await import('./ls.ts')).listPreviews,
};

const rm: CommandSpec = {
  name: 'rm',
  summary: 'revoke public links; takes effect within seconds',
  details: 'Tries every link; the exit code is 1 if any failed. Revoking a revoked link succeeds.',
  arguments: [SANDBOX, { name: '<links...>', about: 'link ids' }],
  examples: [`berth preview rm ${ID} ${LINK}`],
  load: async () => (await import('./rm.ts')).removePreviews,
};

const open: CommandSpec = {
  name: 'open',
  summary: 'open a link to a sandbox in the browser, or print it if there is no browser',
  arguments: [
    SANDBOX,
    { name: '<port-or-link>', about: 'port, for a new team link, or id of a public link', fields: ['port'] },
  ],
  examples: [`berth preview open ${ID} 3000`, `berth preview open ${ID} ${LINK}`],
  load: async () => (await import('./open.ts')).openPreview,
};

export const previewGroup: GroupSpec = {
  name: 'preview',
  summary: 'manage links that open a port of a sandbox in a browser',
  commands: [create, ls, rm, open],
};
