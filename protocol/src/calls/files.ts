// File calls. Contents and listings are bytes, never JSON, so that no daemon buffers or parses
// them. Paths are absolute, without `.` and `..`. Calls act as the user of commands.
import { z } from 'zod';
import { FILE_LIMITS } from '@berth/contract/route/limits.ts';
import { errnoName, FILE_LIST_MAX_BYTES } from '../files.ts';
import {
  FILE_CALL_SECONDS,
  FILE_CONDITION,
  FILE_ERRORS,
  FILE_MODE,
  FILE_PATH_BYTES,
  FILE_READ_BYTES,
  FILE_TRANSFER_BYTES,
  FILE_WRITE_BYTES,
  type FileErrorCode,
} from '../guest-limits.ts';
import { defineCall } from './define.ts';

/** Above the limit in bytes, which the guest checks. */
export const path = z
  .string()
  .max(4_096)
  .regex(/^\/[^\0]*$/)
  .meta({ description: 'must be an absolute path without NUL', tooLong: 'file_path_invalid' });

export const errors = Object.keys(FILE_ERRORS) as FileErrorCode[];
export const UNSUPPORTED = { 404: ['file_call_unsupported', 'the guest daemon lacks the file call'] } as const;
const UNKNOWN_OPTION = { 400: ['file_call_unsupported', 'the guest daemon lacks an option of the file call'] } as const;
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

const ifUnchanged = z.string().regex(FILE_CONDITION);
const mode = z.string().regex(FILE_MODE);

/**
 * Writes a file atomically. Not repeatable: a retry could overwrite a concurrent write. Guest
 * daemons before version 5 refuse a condition, those before version 10 a mode.
 */
export const writeFile = defineCall({
  name: 'writeFile',
  target: 'pass-through',
  method: 'PUT',
  path: '/file',
  query: z.strictObject({ path, ifUnchanged: ifUnchanged.optional(), mode: mode.optional() }),
  upload: true,
  requestBytes: FILE_WRITE_BYTES,
  form: 'json',
  response: fileWritten,
  confirms: ({ size }: FileWritten, uploadBytes: number) => size === uploadBytes,
  responseBytes: 4_096,
  ...deadline,
  errors,
  statuses: UNKNOWN_OPTION,
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

/** {@link listFiles} with modes and the targets of links. */
export const listEntries = defineCall({
  ...listFiles,
  name: 'listEntries',
  path: '/files/entries',
  statuses: UNSUPPORTED,
  since: 10,
});

const kindOfTarget = z.enum(['directory', 'file', 'other']);
const statOfFile = z.strictObject({
  kind: z.enum(['directory', 'file', 'link', 'other']),
  size: z.int().min(0),
  mtimeSeconds: z.int(),
  mode: z.string().regex(/^[0-7]{4}$/),
  /** Target of a link, if it is valid UTF-8. */
  target: z
    .string()
    .min(1)
    .max(FILE_PATH_BYTES)
    .refine((text) => text.isWellFormed() && !text.includes('\0'))
    .optional(),
  /** Kind of what a link resolves to; null: nothing that the tenant can reach. */
  resolved: kindOfTarget.nullable().optional(),
});
export type StatOfFile = z.infer<typeof statOfFile>;

/** Describes a file, a folder or a link itself. */
export const statFile = defineCall({
  name: 'statFile',
  target: 'pass-through',
  method: 'GET',
  path: '/file/stat',
  query: z.strictObject({ path }),
  form: 'json',
  response: statOfFile,
  // The target, each byte escaped.
  responseBytes: 6 * FILE_PATH_BYTES + 1_024,
  ...deadline,
  errors,
  statuses: UNSUPPORTED,
  repeatable: true,
  since: 10,
});

const bytes = z.coerce.number<string>().int().min(0).max(FILE_TRANSFER_BYTES);

/**
 * A stream with the content of a file of any length. With `bytes`, a write: the caller sends as
 * many bytes; the guest sends {@link fileStored} as soon as it is done or refuses, and closes.
 * Without, a read: the guest sends the length in decimal, a line feed and the content. A write that
 * breaks off changes no file. With `offset`, an append to a file of exactly that size, or to a new
 * one if that is 0: bytes that arrived stay. Guest daemons before version 11 refuse it.
 */
export const openFile = defineCall({
  name: 'openFile',
  target: 'pass-through',
  method: 'GET',
  path: '/file/stream',
  query: z.union([
    z.strictObject({ path, bytes, ifUnchanged: ifUnchanged.optional(), mode: mode.optional() }),
    z.strictObject({ path, bytes, offset: bytes, mode: mode.optional() }),
    z.strictObject({ path }),
  ]),
  form: 'upgrade',
  upgrade: 'berth-file',
  ...deadline,
  errors,
  statuses: { ...UNSUPPORTED, ...UNKNOWN_OPTION },
  since: 5,
});

export type FileOpened = z.infer<typeof openFile.query>;

/**
 * A stream with a part of a file of any length. The guest sends {@link fileOffer}, the caller
 * `<first byte> <length>` and a line feed, and the guest that part. Caller and guest then close.
 */
export const openPart = defineCall({
  name: 'openPart',
  target: 'pass-through',
  method: 'GET',
  path: '/file/part',
  query: z.strictObject({ path }),
  form: 'upgrade',
  upgrade: 'berth-file',
  ...deadline,
  errors,
  statuses: UNSUPPORTED,
  since: 10,
});

/**
 * The first line of {@link openPart}: the size, a space, and the version of the content: it differs
 * after each change. `-`: a file that the kernel generates, which has none and is sent as a whole.
 */
export const fileOffer = z.codec(
  z.string().regex(/^\d{1,16} (?:-|[0-9a-f][0-9a-f.-]{0,127})$/),
  z.object({ size: z.int().min(0), version: z.string().nullable() }),
  {
    decode: (line) => {
      const [size, version = '-'] = line.split(' ');
      return { size: Number(size), version: version === '-' ? null : version };
    },
    encode: ({ size, version }) => `${size} ${version ?? '-'}`,
  },
);

/**
 * The last line of a write by {@link openFile}. `size`: of the file; after a `file_changed`, the
 * one that the append did not expect.
 */
export const fileStored = z.union([
  z.strictObject({ size: z.int().min(0) }),
  z.strictObject({
    error: z.strictObject({ code: z.enum(errors), errno: errnoName.optional(), size: z.int().min(0).optional() }),
  }),
]);

const changed = z.strictObject({});
const changeCall = {
  target: 'pass-through',
  form: 'json',
  response: changed,
  responseBytes: 1_024,
  errors,
  since: 5,
} as const;
const flag = z.literal('true').optional();

/** Deletes a file, a link itself, an empty folder or, if `recursive`, a folder with its content. */
export const deleteFile = defineCall({
  ...changeCall,
  name: 'deleteFile',
  method: 'DELETE',
  path: '/file',
  query: z.strictObject({ path, recursive: flag }),
  ...deadline,
});

/** Moves a file or folder; refuses an existing target unless `replace`. */
export const moveFile = defineCall({
  ...changeCall,
  name: 'moveFile',
  method: 'POST',
  path: '/file/move',
  query: z.strictObject({ path, to: path, replace: flag }),
  ...deadline,
});

/** Sets the permission bits of a file or folder, and clears its other bits; follows links. */
export const setFileMode = defineCall({
  ...changeCall,
  name: 'setFileMode',
  method: 'POST',
  path: '/file/mode',
  query: z.strictObject({ path, mode }),
  ...deadline,
  statuses: UNSUPPORTED,
  repeatable: true,
  since: 10,
});

/** Creates a folder and its missing parents; refuses an existing path. */
export const makeFolder = defineCall({
  ...changeCall,
  name: 'makeFolder',
  method: 'POST',
  path: '/folder',
  query: z.strictObject({ path }),
  ...deadline,
});
