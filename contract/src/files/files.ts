// Files of a sandbox: folders and what is in them, reading and writing. Relative paths are below
// /code (spec: Sandboxes rule 5).
import { z } from 'zod';
import { exampleFile, exampleFolder } from '../route/examples.ts';
import { FILE_LIMITS } from '../route/limits.ts';
import { shownAsInteger } from '../route/number-in-query.ts';
import { defineRoute } from '../route/route.ts';
import { USE_ERRORS } from '../sandboxes/use.ts';
import { sandboxParams } from '../sandboxes/sandboxes.ts';
import { text } from '../route/text.ts';

const { depth: DEPTH } = FILE_LIMITS;

const filePath = text(1, FILE_LIMITS.pathCharacters).describe(
  `Relative paths are below /code. \`.\` and \`..\` are worked out in the text of the path, before any link is followed. At most ${FILE_LIMITS.pathBytes} bytes in all.`,
);
const folderPath = text(0, FILE_LIMITS.pathCharacters)
  .default('')
  .describe('Relative paths are below /code; without one, or with an empty one: /code itself.');

/**
 * A whole number in digits. What is out of bounds is not refused but brought to the nearest bound
 * (spec: Limits).
 */
const depth = z
  .string()
  .regex(/^-?\d{1,20}$/, `must be a whole number; it is brought to ${DEPTH.min} to ${DEPTH.max}`)
  .transform((digits) => Math.min(DEPTH.max, Math.max(DEPTH.min, Number(digits))))
  .default(DEPTH.default)
  .meta({
    ...shownAsInteger({
      description: `Levels of folders; brought to ${DEPTH.min} to ${DEPTH.max} when it is out of them.`,
    }),
    default: DEPTH.default,
  });

const encoding = z.enum(['utf8', 'base64']);
const size = z.int().nonnegative().describe('In bytes of the file.');

/** spec: File entries. */
export const fileEntry = z
  .strictObject({
    label: z.string().describe('The last part of the path.'),
    path: z.string(),
    type: z
      .enum(['directory', 'file'])
      .describe('Links, sockets, devices and FIFOs are a `file`, whatever they lead to.'),
  })
  .meta({ id: 'FileEntry', description: 'What is in a folder.' });
export type FileEntry = z.infer<typeof fileEntry>;

export const folderListing = z
  .strictObject({
    path: z.string(),
    truncated: z.boolean().describe('Whether there is more than is listed.'),
    entries: z.array(fileEntry).describe('Sorted by label.'),
  })
  .meta({ id: 'FolderListing', description: 'A folder and what is in it.' });
export type FolderListing = z.infer<typeof folderListing>;

export const filesSnapshot = z
  .strictObject({
    path: z.string(),
    truncated: z.boolean().describe('Whether there is more than is listed.'),
    directories: z
      .record(z.string(), z.array(fileEntry))
      .describe('What is in each folder that was looked into, by its path.'),
  })
  .meta({ id: 'FilesSnapshot', description: 'A listing of several levels, not a backup.' });
export type FilesSnapshot = z.infer<typeof filesSnapshot>;

export const fileContent = z
  .strictObject({
    path: z.string(),
    content: z.string(),
    encoding: encoding.describe('`utf8` exactly when the bytes are valid UTF-8 without NUL.'),
    size,
  })
  .meta({ id: 'FileContent', description: 'A file.' });
export type FileContent = z.infer<typeof fileContent>;

/** The table is complete: unknown fields are refused by name. */
export const writeFileBody = z.strictObject({
  path: filePath,
  content: z
    .string()
    .refine((value) => value.isWellFormed(), 'must not contain lone surrogates')
    .describe(
      `At most ${FILE_LIMITS.writeBytes} bytes of file. With \`base64\`: the standard alphabet with padding, without line breaks. Without lone surrogates.`,
    ),
  encoding: encoding.default('utf8').describe('What `content` is.'),
});

export const writtenFile = z
  .strictObject({ path: z.string(), size })
  .meta({ id: 'WrittenFile', description: 'A file that was written.' });
export type WrittenFile = z.infer<typeof writtenFile>;

/** What every file call may answer. */
const ERRORS_OF_ALL = [
  ...USE_ERRORS,
  'file_path_invalid',
  'file_not_found',
  'not_a_directory',
  'file_access_denied',
  'file_system_error',
  'sandbox_busy',
] as const;

export const listFiles = defineRoute({
  name: 'listFiles',
  summary: 'What is in a folder',
  method: 'GET',
  path: '/v1/sandboxes/{sandboxId}/files',
  auth: ['session', 'api_key'],
  permission: 'sandbox.files.read',
  request: { params: sandboxParams, query: z.object({ path: folderPath }) },
  response: { status: 200, body: folderListing },
  errors: ERRORS_OF_ALL,
  activity: null,
  published: true,
  example: { query: { path: '/code' }, answer: exampleFolder },
});

export const snapshotFiles = defineRoute({
  name: 'snapshotFiles',
  summary: 'What is in a folder and in the folders below it, to a depth of 1 to 5',
  method: 'GET',
  path: '/v1/sandboxes/{sandboxId}/files/snapshot',
  auth: ['session', 'api_key'],
  permission: 'sandbox.files.read',
  request: { params: sandboxParams, query: z.object({ path: folderPath, depth }) },
  response: { status: 200, body: filesSnapshot },
  errors: ERRORS_OF_ALL,
  activity: null,
  published: true,
  example: {
    query: { path: '/code', depth: 1 },
    answer: { path: '/code', truncated: false, directories: { '/code': exampleFolder.entries } },
  },
});

export const readFile = defineRoute({
  name: 'readFile',
  summary: 'A file of at most 8 MiB',
  method: 'GET',
  path: '/v1/sandboxes/{sandboxId}/file',
  auth: ['session', 'api_key'],
  permission: 'sandbox.files.read',
  request: { params: sandboxParams, query: z.object({ path: filePath }) },
  response: { status: 200, body: fileContent },
  errors: [...ERRORS_OF_ALL, 'not_a_file', 'file_too_large'],
  activity: null,
  published: true,
  example: { query: { path: 'hello.py' }, answer: exampleFile },
});

export const writeFile = defineRoute({
  name: 'writeFile',
  summary: 'Writes a file of at most 2 MiB, whole or not at all; folders on the way are made',
  method: 'PUT',
  path: '/v1/sandboxes/{sandboxId}/file',
  auth: ['session', 'api_key'],
  permission: 'sandbox.files.write',
  request: { params: sandboxParams, body: writeFileBody },
  bodyBytes: FILE_LIMITS.bodyBytes,
  response: { status: 200, body: writtenFile },
  errors: [...ERRORS_OF_ALL, 'not_a_file', 'file_too_large', 'guest_disk_full'],
  activity: 'sandbox_file_written',
  published: true,
  example: {
    body: { path: 'hello.py', content: exampleFile.content },
    answer: { path: exampleFile.path, size: exampleFile.size },
  },
});
