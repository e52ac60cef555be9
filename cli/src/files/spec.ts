import type { CommandSpec } from '../program/command-spec.ts';

export const copyCommand: CommandSpec = {
  name: 'cp',
  summary: 'copy a file or folder to or from a sandbox',
  details: `Exactly one path is SANDBOX:PATH; relative paths in a sandbox start at /code. Folders are copied
recursively, into an existing folder or as a new one; FOLDER/. copies the contents of a folder.
Permissions, times and symlinks are kept. A download appears at its target only when complete;
symlinks that point outside the copied folder are skipped.

Exit code: 1 if any entry was not copied; each is reported.`,
  arguments: [
    { name: '<source>', about: 'SANDBOX:PATH or a local path' },
    { name: '<target>', about: 'SANDBOX:PATH or a local path' },
  ],
  options: [{ flags: '-L, --follow-link', about: 'if the source is a symlink, copy its target' }],
  examples: [
    'berth cp ./app sbx_uodiunxlni4uyqmllemsqh4l:. # /code/app',
    'berth cp ./app/. sbx_uodiunxlni4uyqmllemsqh4l:. # the contents, into /code',
    'berth cp sbx_uodiunxlni4uyqmllemsqh4l:/code/dist ./dist',
  ],
  json: false,
  load: async () => (await import('./copy.ts')).copy,
};
