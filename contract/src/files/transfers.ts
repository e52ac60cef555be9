// Contents of any length, as raw bytes.
import { z } from 'zod';
import { numberInQuery } from '../route/number-in-query.ts';
import { defineRoute } from '../route/route.ts';
import { sandboxParams } from '../sandboxes/sandboxes.ts';
import { FILE_CALL_ERRORS, filePath, ifUnchanged, WRITE_ERRORS, writtenMode } from './files.ts';

const ERRORS = [...FILE_CALL_ERRORS, 'too_many_connections'] as const;

export const downloadFile = defineRoute({
  name: 'downloadFile',
  summary:
    'Sends the bytes of a file of any size, or one range of them; a response that breaks off is shorter than its ' +
    'Content-Length, and can be resumed at its byte with Range and If-Range',
  method: 'GET',
  path: '/v1/sandboxes/{sandboxId}/file/content',
  auth: ['session', 'api_key'],
  permission: 'sandbox.files.read',
  request: { params: sandboxParams, query: z.strictObject({ path: filePath }) },
  response: { status: 200, body: z.unknown(), bytes: true },
  ranges: true,
  errors: [...ERRORS, 'not_a_file', 'file_too_large', 'range_not_satisfiable'],
  activity: null,
  published: true,
});

const offset = numberInQuery({
  min: 0,
  max: Number.MAX_SAFE_INTEGER,
  description:
    'Appends the body in place, to a file of exactly this many bytes: 0 for a new or empty file. A file of another ' +
    'size is 409 `file_changed`, a link 400 `not_a_file`. Not atomic: bytes that arrive before a failure stay; ' +
    'continue at the size that `files/stat` returns. Not with `ifUnchanged`. `mode` applies to a new file only.',
}).optional();

const uploadedFile = z
  .strictObject({
    path: z.string(),
    size: z.int().nonnegative().describe('Size of the file in bytes.'),
    sha256: z
      .string()
      .describe('SHA-256 of the request body in hex. Without `offset`, also of the file, for `ifUnchanged`.'),
  })
  .meta({ id: 'UploadedFile', description: 'Path and size of a file, and hash of the uploaded bytes.' });
export type UploadedFile = z.infer<typeof uploadedFile>;

export const uploadFile = defineRoute({
  name: 'uploadFile',
  summary:
    'Writes a file of any size atomically, or appends to one with `offset`, so that an upload that breaks off can be ' +
    'resumed; missing parent folders are created',
  method: 'PUT',
  path: '/v1/sandboxes/{sandboxId}/file/content',
  auth: ['session', 'api_key'],
  permission: 'sandbox.files.write',
  request: { params: sandboxParams, query: z.strictObject({ path: filePath, ifUnchanged, mode: writtenMode, offset }) },
  upload: true,
  response: { status: 200, body: uploadedFile },
  errors: [...ERRORS, ...WRITE_ERRORS, 'upload_stalled'],
  activity: 'sandbox_file_written',
  published: true,
});
