// Contents of any length, as raw bytes.
import { z } from 'zod';
import { defineRoute } from '../route/route.ts';
import { sandboxParams } from '../sandboxes/sandboxes.ts';
import { FILE_CALL_ERRORS, filePath, ifUnchanged, WRITE_ERRORS, writtenFile, writtenMode } from './files.ts';

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
  request: { params: sandboxParams, query: z.object({ path: filePath }) },
  response: { status: 200, body: z.unknown(), bytes: true },
  ranges: true,
  errors: [...ERRORS, 'not_a_file', 'file_too_large', 'range_not_satisfiable'],
  activity: null,
  published: true,
});

export const uploadFile = defineRoute({
  name: 'uploadFile',
  summary: 'Writes a file of any size atomically; missing parent folders are created',
  method: 'PUT',
  path: '/v1/sandboxes/{sandboxId}/file/content',
  auth: ['session', 'api_key'],
  permission: 'sandbox.files.write',
  request: { params: sandboxParams, query: z.object({ path: filePath, ifUnchanged, mode: writtenMode }) },
  upload: true,
  response: { status: 200, body: writtenFile },
  errors: [...ERRORS, ...WRITE_ERRORS, 'upload_stalled'],
  activity: 'sandbox_file_written',
  published: true,
});
