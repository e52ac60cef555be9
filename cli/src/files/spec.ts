// `berth cp`.
import type { CommandSpec } from '../program/command-spec.ts';

export const copyCommand: CommandSpec = {
  name: 'cp',
  summary: 'copy a file or folder into a sandbox, or out of it',
  details: `One of the two is SANDBOX:PATH; paths in a sandbox that do not begin with a slash are below /code. Folders are copied with all that is in them, into a
folder that is there or as a new one; FOLDER/. means the content of it. Permissions, times and symlinks are kept. What comes out of a sandbox is put
together beside its place and gets its name when all of it is there; symlinks that lead out of what is copied are left out.

Exit code: 1 when anything was not copied; each is told.`,
  arguments: [
    { name: '<source>', about: 'SANDBOX:PATH, or a path of this machine' },
    { name: '<target>', about: 'the other of the two' },
  ],
  options: [{ flags: '-L, --follow-link', about: 'when the source is a symlink, copy what it leads to' }],
  examples: [
    'berth cp ./app sbx_uodiunxlni4uyqmllemsqh4l:. # /code/app',
    'berth cp ./app/. sbx_uodiunxlni4uyqmllemsqh4l:. # its content, into /code',
    'berth cp sbx_uodiunxlni4uyqmllemsqh4l:/code/dist ./dist',
  ],
  json: false,
  load: async () => (await import('./copy.ts')).copy,
};
