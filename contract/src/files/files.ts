// Files of a sandbox: list, read and write. Relative paths are relative to /code (spec: Sandboxes
// rule 5).
import { z } from 'zod';
import { exampleFile, exampleFolder, exampleStat } from '../route/examples.ts';
import { FILE_LIMITS } from '../route/limits.ts';
import { shownAsInteger } from '../route/number-in-query.ts';
import { defineRoute } from '../route/route.ts';
import { USE_ERRORS } from '../sandboxes/use.ts';
import { sandboxParams } from '../sandboxes/sandboxes.ts';
import { text, timestamp } from '../route/text.ts';

const { depth: DEPTH } = FILE_LIMITS;

export const filePath = text(1, FILE_LIMITS.pathCharacters).describe(
  'Relative paths are relative to /code. `.` and `..` are resolved lexically, before symbolic links are ' +
    `followed. At most ${FILE_LIMITS.pathBytes} bytes in total.`,
);
export const folderPath = text(0, FILE_LIMITS.pathCharacters)
  .default('')
  .describe('Relative paths are relative to /code; absent or empty: /code.');

/** An integer, clamped to its limits rather than rejected (spec: Limits). */
const depth = z
  .string()
  .regex(/^-?\d{1,20}$/, `must be an integer; it is clamped to ${DEPTH.min} to ${DEPTH.max}`)
  .transform((digits) => Math.min(DEPTH.max, Math.max(DEPTH.min, Number(digits))))
  .default(DEPTH.default)
  .meta({
    ...shownAsInteger({
      description: `Levels of folders to list; clamped to ${DEPTH.min} to ${DEPTH.max}.`,
    }),
    default: DEPTH.default,
  });

const encoding = z.enum(['utf8', 'base64']);
const size = z.int().nonnegative().describe('Size of the file in bytes.');
const sha256 = z.string().describe('SHA-256 of the content in hex, for `ifUnchanged`.');
export const ifUnchanged = z
  .string()
  .regex(/^(?:absent|[0-9a-f]{64})$/, 'must be a SHA-256 in hex, or `absent`')
  .optional()
  .describe(
    '`sha256` of the content that the write replaces: other content is 409 `file_changed`. `absent`: an existing ' +
      'file is 409 `file_exists`.',
  );

export const newMode = z
  .string()
  .regex(/^0?[0-7]{3}$/, 'must be permission bits in octal, three digits after an optional 0, such as `0644`')
  .meta({ examples: ['0644', '755'] });
export const writtenMode = newMode
  .optional()
  .describe('Permission bits in octal, such as `0644`. By default those of the replaced file; of a new file `0644`.');

const fileMode = z
  .string()
  .regex(/^[0-7]{4}$/)
  .describe(
    'Permission bits in octal, such as `0644`; the first digit has set-user-ID, set-group-ID and sticky. ' +
      'Absent from a VM of an earlier version.',
  );
const linkTarget = z.string().describe('Target of a link, as it is stored. Absent if it is not UTF-8.');

/** spec: File entries. */
const fileEntry = z
  .strictObject({
    label: z.string().describe('Last segment of the path.'),
    path: z.string(),
    type: z.enum(['directory', 'file']).describe('Symbolic links, sockets, devices and FIFOs are reported as `file`.'),
    kind: z
      .enum(['directory', 'file', 'link', 'other'])
      .optional()
      .describe('`other`: a socket, device or FIFO. Absent, as are size and time, from a VM of an earlier version.'),
    size: z.int().nonnegative().optional().describe('Bytes of the file; of a link itself, not of its target.'),
    modifiedAt: timestamp
      .nullable()
      .optional()
      .describe('Time of the last change, as the sandbox reports it; null outside the years 0 to 9999.'),
    mode: fileMode.optional(),
    linkTarget: linkTarget.optional(),
  })
  .meta({ id: 'FileEntry', description: 'An entry of a folder.' });
export type FileEntry = z.infer<typeof fileEntry>;

const fileStat = z
  .strictObject({
    path: z.string(),
    kind: z.enum(['directory', 'file', 'link', 'other']).describe('`other`: a socket, device or FIFO.'),
    size: z.int().nonnegative().describe('Bytes of the file; of a link itself, not of its target.'),
    modifiedAt: fileEntry.shape.modifiedAt.unwrap(),
    mode: fileMode,
    linkTarget: linkTarget.optional(),
    resolvesTo: z
      .enum(['directory', 'file', 'other'])
      .nullable()
      .optional()
      .describe("Of a link: kind of its target; null if no target is within reach of the sandbox's user."),
  })
  .meta({ id: 'FileStat', description: 'Kind, size, time and mode of a file, a folder or a link itself.' });
export type FileStat = z.infer<typeof fileStat>;

export const folderListing = z
  .strictObject({
    path: z.string(),
    truncated: z.boolean().describe('Whether entries are missing because of the size limit.'),
    entries: z.array(fileEntry).describe('Sorted by label.'),
  })
  .meta({ id: 'FolderListing', description: 'The entries of a folder.' });
export type FolderListing = z.infer<typeof folderListing>;

export const filesSnapshot = z
  .strictObject({
    path: z.string(),
    truncated: z.boolean().describe('Whether entries are missing because of the size limit.'),
    directories: z.record(z.string(), z.array(fileEntry)).describe('Entries of each listed folder, keyed by its path.'),
  })
  .meta({ id: 'FilesSnapshot', description: 'A listing of several levels of folders; not a backup.' });
export type FilesSnapshot = z.infer<typeof filesSnapshot>;

export const fileContent = z
  .strictObject({
    path: z.string(),
    content: z.string(),
    encoding: encoding.describe('`utf8` if the bytes are valid UTF-8 without NUL, otherwise `base64`.'),
    size,
    sha256,
  })
  .meta({ id: 'FileContent', description: 'A file and its content.' });
export type FileContent = z.infer<typeof fileContent>;

/** The spec's table, and `ifUnchanged`: unknown fields are rejected. */
const writeFileBody = z.strictObject({
  path: filePath,
  content: z
    .string()
    .refine((value) => value.isWellFormed(), 'must not contain lone surrogates')
    .describe(
      `At most ${FILE_LIMITS.writeBytes} bytes after decoding. With \`base64\`: standard alphabet with ` +
        'padding, no line breaks. Must not contain lone surrogates.',
    ),
  encoding: encoding.default('utf8').describe('Encoding of `content`.'),
  ifUnchanged,
  mode: writtenMode,
});

export const writtenFile = z
  .strictObject({ path: z.string(), size, sha256 })
  .meta({ id: 'WrittenFile', description: 'Path, size and hash of a written file.' });
export type WrittenFile = z.infer<typeof writtenFile>;

/** Errors of every file call. */
export const FILE_CALL_ERRORS = [
  ...USE_ERRORS,
  'file_path_invalid',
  'file_not_found',
  'not_a_directory',
  'file_access_denied',
  'file_system_error',
  'sandbox_busy',
  'too_much_in_flight',
] as const;

/** Errors of every write of a file. */
export const WRITE_ERRORS = [
  'not_a_file',
  'guest_disk_full',
  'file_changed',
  'file_exists',
  'file_call_unsupported',
] as const;

export const listFiles = defineRoute({
  name: 'listFiles',
  summary: 'Lists a folder',
  method: 'GET',
  path: '/v1/sandboxes/{sandboxId}/files',
  auth: ['session', 'api_key'],
  permission: 'sandbox.files.read',
  request: { params: sandboxParams, query: z.strictObject({ path: folderPath }) },
  response: { status: 200, body: folderListing },
  errors: FILE_CALL_ERRORS,
  activity: null,
  published: true,
  example: { query: { path: '/code' }, answer: exampleFolder },
});

export const snapshotFiles = defineRoute({
  name: 'snapshotFiles',
  summary: 'Lists a folder and its subfolders, to a depth of 1 to 5',
  method: 'GET',
  path: '/v1/sandboxes/{sandboxId}/files/snapshot',
  auth: ['session', 'api_key'],
  permission: 'sandbox.files.read',
  request: { params: sandboxParams, query: z.strictObject({ path: folderPath, depth }) },
  response: { status: 200, body: filesSnapshot },
  errors: FILE_CALL_ERRORS,
  activity: null,
  published: true,
  example: {
    query: { path: '/code', depth: 1 },
    answer: { path: '/code', truncated: false, directories: { '/code': exampleFolder.entries } },
  },
});

export const statFile = defineRoute({
  name: 'statFile',
  summary: 'Describes a file, a folder or a link; a link is not followed',
  method: 'GET',
  path: '/v1/sandboxes/{sandboxId}/files/stat',
  auth: ['session', 'api_key'],
  permission: 'sandbox.files.read',
  request: { params: sandboxParams, query: z.strictObject({ path: filePath }) },
  response: { status: 200, body: fileStat },
  errors: [...FILE_CALL_ERRORS, 'file_call_unsupported'],
  activity: null,
  published: true,
  example: { query: { path: 'hello.py' }, answer: exampleStat },
});

export const readFile = defineRoute({
  name: 'readFile',
  summary: 'Reads a file of at most 8 MiB',
  method: 'GET',
  path: '/v1/sandboxes/{sandboxId}/file',
  auth: ['session', 'api_key'],
  permission: 'sandbox.files.read',
  request: { params: sandboxParams, query: z.strictObject({ path: filePath }) },
  response: { status: 200, body: fileContent },
  errors: [...FILE_CALL_ERRORS, 'not_a_file', 'file_too_large'],
  activity: null,
  published: true,
  example: { query: { path: 'hello.py' }, answer: exampleFile },
});

export const writeFile = defineRoute({
  name: 'writeFile',
  summary: 'Writes a file of at most 2 MiB atomically; missing parent folders are created',
  method: 'PUT',
  path: '/v1/sandboxes/{sandboxId}/file',
  auth: ['session', 'api_key'],
  permission: 'sandbox.files.write',
  request: { params: sandboxParams, body: writeFileBody },
  bodyBytes: FILE_LIMITS.bodyBytes,
  longField: { name: 'content', maxBytes: FILE_LIMITS.contentCharacters, tooLong: 'file_too_large' },
  response: { status: 200, body: writtenFile },
  errors: [...FILE_CALL_ERRORS, ...WRITE_ERRORS, 'file_too_large'],
  activity: 'sandbox_file_written',
  published: true,
  example: {
    body: { path: 'hello.py', content: exampleFile.content },
    answer: { path: exampleFile.path, size: exampleFile.size, sha256: exampleFile.sha256 },
  },
});
