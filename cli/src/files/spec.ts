import { FILE_LINK_SECONDS } from '@berth/sdk/limits';
import { durationSeconds, wholeNumber } from '../program/option-values.ts';
import type { CommandSpec, GroupSpec } from '../program/command-spec.ts';
import { SANDBOX } from '../program/sandbox-argument.ts';

export const copyCommand: CommandSpec = {
  name: 'cp',
  summary: 'copy a file or folder to or from a sandbox',
  details: `Exactly one path is SANDBOX:PATH, with a name only before the first slash; ./ before a local path
keeps its colon. Relative paths in a sandbox start at /code. Folders are copied
recursively, into an existing folder or as a new one; FOLDER/. copies the contents of a folder.
Permissions, times and symlinks are kept. A download appears at its target only when complete;
symlinks that point outside the copied folder are skipped. The download of a single file continues
at its byte after a broken connection, or starts again if the file has changed. So does the upload of
a single file of 8 MiB or more, also when the same command runs again after it was interrupted: until
it is complete, its bytes are in a file .berth-cp-... beside the target. A continued upload reports
so, and compares the SHA-256 of both files before it replaces the target. A download that is killed
leaves a folder .berth-cp-... beside the target, which a later download to the same folder on this
host removes after a day.

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

const ID = 'sbx_uodiunxlni4uyqmllemsqh4l';

const ls: CommandSpec = {
  name: 'ls',
  summary: 'list a folder, with kind, mode, size and time of the last change',
  details: 'Exit code: 1 if the listing is incomplete.',
  arguments: [SANDBOX, { name: '[path]', about: 'folder (default: /code)' }],
  examples: [`berth files ls ${ID} src`],
  load: async () => (await import('./folder.ts')).listFolder,
};

const stat: CommandSpec = {
  name: 'stat',
  summary: 'show kind, size, mode and target of a file, a folder or a link itself',
  arguments: [SANDBOX, { name: '<path>', about: 'file, folder or link' }],
  examples: [`berth files stat ${ID} build.sh`],
  load: async () => (await import('./folder.ts')).showStat,
};

const cat: CommandSpec = {
  name: 'cat',
  summary: 'write the content of a file, of any size, to stdout',
  arguments: [SANDBOX, { name: '<path>', about: 'file' }],
  examples: [`berth files cat ${ID} build.log`],
  json: false,
  load: async () => (await import('./folder.ts')).writeContent,
};

const rm: CommandSpec = {
  name: 'rm',
  summary: 'delete files, links and folders; links are not followed',
  details: 'Tries every path; the exit code is 1 if any failed.',
  arguments: [SANDBOX, { name: '<paths...>', about: 'files or folders', fields: ['path'] }],
  options: [{ flags: '-r, --recursive', about: 'delete folders with their content' }],
  examples: [`berth files rm ${ID} old.log`, `berth files rm -r ${ID} node_modules`],
  load: async () => (await import('./folder.ts')).removePaths,
};

const mv: CommandSpec = {
  name: 'mv',
  summary: 'move or rename a file or folder; the target is its new path',
  arguments: [
    SANDBOX,
    { name: '<source>', about: 'file or folder', fields: ['from'] },
    { name: '<target>', about: 'its new path', fields: ['to'] },
  ],
  options: [{ flags: '-f, --force', about: 'replace an existing file or empty folder', fields: ['replace'] }],
  examples: [`berth files mv ${ID} hello.py src/hello.py`],
  load: async () => (await import('./folder.ts')).movePath,
};

const chmod: CommandSpec = {
  name: 'chmod',
  summary: 'set the permission bits of files and folders; links are followed',
  details: 'Tries every path; the exit code is 1 if any failed.',
  arguments: [
    SANDBOX,
    { name: '<mode>', about: 'permission bits in octal, such as 755' },
    { name: '<paths...>', about: 'files or folders', fields: ['path'] },
  ],
  examples: [`berth files chmod ${ID} 755 run.sh`],
  load: async () => (await import('./folder.ts')).setModes,
};

const mkdir: CommandSpec = {
  name: 'mkdir',
  summary: 'create folders with their missing parents',
  details: 'Tries every path; the exit code is 1 if any failed.',
  arguments: [SANDBOX, { name: '<paths...>', about: 'new folders', fields: ['path'] }],
  examples: [`berth files mkdir ${ID} src/lib`],
  load: async () => (await import('./folder.ts')).createFolders,
};

const link: CommandSpec = {
  name: 'link',
  summary: 'create a link with which anyone downloads or uploads one file, and print it',
  details: `A browser needs no credential for it. The link is not stored, so it is not listed and cannot be
revoked alone. It ends with the API key that created it, or the access of its creator.`,
  arguments: [SANDBOX, { name: '<path>', about: 'file' }],
  options: [
    { flags: '--write', about: 'let the holder upload the file instead (PUT)', fields: ['action'] },
    {
      flags: '--expires-in <time>',
      about: 'lifetime in seconds, or as 30m or 2h (default: 15m)',
      parse: durationSeconds(FILE_LINK_SECONDS.min, FILE_LINK_SECONDS.max),
      fields: ['expiresInSeconds'],
    },
    { flags: '--max-bytes <bytes>', about: 'refuse larger uploads', parse: wholeNumber(0, 999_999_999_999_999) },
    { flags: '--no-overwrite', about: 'refuse to replace an existing file', fields: ['overwrite'] },
    { flags: '--name <name>', about: 'name of the download (default: that of the file)', fields: ['fileName'] },
  ],
  examples: [
    `berth files link ${ID} dist/report.pdf --expires-in 2h`,
    `curl -T photo.png "$(berth files link ${ID} in/photo.png --write --max-bytes 5000000)"`,
  ],
  load: async () => (await import('./link.ts')).createLink,
};

const watch: CommandSpec = {
  name: 'watch',
  summary: 'print changes below a folder as they happen, until Ctrl-C',
  details: `Prints created, changed or removed with the path; a moved file is removed and created. The first line,
reset, says that the watch has begun; a later one that changes may have been missed: list the folder
then. Does not keep the sandbox awake; continues after a sleep. With --json, each change is a line of
JSON.`,
  arguments: [SANDBOX, { name: '[path]', about: 'folder (default: /code)' }],
  options: [{ flags: '-r, --recursive', about: 'watch folders below too' }],
  examples: [`berth files watch ${ID}`, `berth files watch -r ${ID} src --json`],
  load: async () => (await import('./watch.ts')).watchFolder,
};

export const filesGroup: GroupSpec = {
  name: 'files',
  summary: 'list, show, change, watch, move, delete and share files of a sandbox, and create folders',
  commands: [ls, stat, cat, rm, mv, chmod, mkdir, link, watch],
};
