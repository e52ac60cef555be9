// File calls on the internal wires. They go straight through: API -> host daemon -> guest daemon,
// with contents and listings as bytes, never as JSON, so that nobody on the way holds or parses
// them. What the guest answers is bounded on the way and parsed where it is used.
//
// | guest daemon                 | host daemon                           | answers 200 with
//                                |
// |------------------------------|---------------------------------------|---------------------------------------------------------|
// | GET /file?path=P             | GET /vms/{id}/file?path=P             | the file's bytes
//                                |
// | PUT /file?path=P             | PUT /vms/{id}/file?path=P             | {@link fileWritten}; the
// request's body is the content  |
// | GET /files?path=P&depth=N    | GET /vms/{id}/files?path=P&depth=N    | a listing
//                                |
//
// Paths are absolute and without `.` and `..`. Calls act as the user that commands run as. Refusals
// have one of `FILE_ERRORS` as their code.
//
// A listing is made of records, the folders level by level, each followed by its entries; nothing
// follows links:
//   `D` <path below the folder asked for, each name after a slash; empty for that folder itself> NUL
//   `d` <name of a folder> NUL | `f` <name of anything else> NUL
//   `E` and `C` (it is whole) or `T` (it was cut off, or a folder could not be looked into): the end, always there
// Names are bytes: Linux does not say that they are UTF-8.
import { z } from 'zod';
import { FILE_ERRORS, FILE_LIST, FILE_LIST_DEPTH, FILE_WRITE_BYTES, type FileErrorCode } from './guest-limits.ts';

export {
  FILE_CALL_SECONDS,
  FILE_ERRORS,
  FILE_LIST,
  FILE_LIST_DEPTH,
  FILE_PATH_BYTES,
  FILE_READ_BYTES,
  FILE_WRITE_BYTES,
  type FileErrorCode,
} from './guest-limits.ts';

/**
 * Longest listing in bytes: its text, the mark and the end of each entry and each folder, and the
 * last entry, which may go beyond the limit.
 */
export const FILE_LIST_MAX_BYTES = FILE_LIST.textBytes + 4 * FILE_LIST.entries + 8_192;

/** What the guest says after a write. */
export const fileWritten = z.object({ size: z.int().min(0).max(FILE_WRITE_BYTES) });
export type FileWritten = z.infer<typeof fileWritten>;

/** Name of an error number, as `ENOSPC`; with `file_system_error`. */
export const errnoName = z.string().regex(/^[A-Z][A-Z0-9]{1,29}$/);

/** Body of a refused file call of the guest daemon. */
export const guestFileError = z.object({
  error: z.object({
    message: z.string().max(4_096),
    code: z.enum(Object.keys(FILE_ERRORS) as [FileErrorCode, ...FileErrorCode[]]),
    errno: errnoName.optional(),
  }),
});

/** Longer than any path can be once its bytes are counted; those are the guest's to count. */
const path = z
  .string()
  .max(4_096)
  .regex(/^\/[^\0]*$/, 'must be an absolute path');

/** Queries of the host's routes. */
export const vmFileQuery = z.strictObject({ path });
export const vmFilesQuery = z.strictObject({
  path,
  depth: z.coerce.number<string>().int().min(FILE_LIST_DEPTH.min).max(FILE_LIST_DEPTH.max),
});
