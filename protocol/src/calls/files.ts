// File calls. Contents and listings are bytes, never JSON, so that no daemon buffers or parses
// them. Paths are absolute, without `.` and `..`. Calls act as the user of commands.
import { z } from 'zod';
import { FILE_LIMITS } from '@berth/contract/route/limits.ts';
import { FILE_LIST_MAX_BYTES } from '../files.ts';
import {
  FILE_CALL_SECONDS,
  FILE_ERRORS,
  FILE_READ_BYTES,
  FILE_WRITE_BYTES,
  type FileErrorCode,
} from '../guest-limits.ts';
import { defineCall } from './define.ts';

/** Above the limit in bytes, which the guest checks. */
const path = z
  .string()
  .max(4_096)
  .regex(/^\/[^\0]*$/)
  .meta({ description: 'must be an absolute path without NUL', tooLong: 'file_path_invalid' });

const errors = Object.keys(FILE_ERRORS) as FileErrorCode[];
const deadline = { deadlineMs: FILE_CALL_SECONDS * 1_000, marginMs: 10_000 } as const;

/** Returns the bytes of a regular file. */
export const readFile = defineCall({
  name: 'readFile',
  target: 'pass-through',
  method: 'GET',
  path: '/file',
  query: z.strictObject({ path }),
  form: 'bytes',
  responseBytes: FILE_READ_BYTES,
  ...deadline,
  errors,
  repeatable: true,
  since: 1,
});

export const fileWritten = z.object({ size: z.int().min(0).max(FILE_WRITE_BYTES) });
export type FileWritten = z.infer<typeof fileWritten>;

/** Writes a file atomically. Not repeatable: a retry could overwrite a concurrent write. */
export const writeFile = defineCall({
  name: 'writeFile',
  target: 'pass-through',
  method: 'PUT',
  path: '/file',
  query: z.strictObject({ path }),
  upload: true,
  requestBytes: FILE_WRITE_BYTES,
  form: 'json',
  response: fileWritten,
  confirms: ({ size }: FileWritten, uploadBytes: number) => size === uploadBytes,
  responseBytes: 4_096,
  ...deadline,
  errors,
  since: 1,
});

/** Returns a listing of a folder, `depth` levels deep, in the format of listing.ts. */
export const listFiles = defineCall({
  name: 'listFiles',
  target: 'pass-through',
  method: 'GET',
  path: '/files',
  query: z.strictObject({
    path,
    depth: z.coerce.number<string>().int().min(FILE_LIMITS.depth.min).max(FILE_LIMITS.depth.max),
  }),
  form: 'bytes',
  responseBytes: FILE_LIST_MAX_BYTES,
  ...deadline,
  errors,
  repeatable: true,
  since: 1,
});
