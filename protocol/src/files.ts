// File calls as facts: the format of a listing, and the longest one.
//
// A listing is made of records, the folders level by level, each followed by its entries; nothing
// follows links:
//   `D` <path below the folder asked for, each name after a slash; empty for that folder itself> NUL
//   `d` <name of a folder> NUL | `f` <name of anything else> NUL
//   `E` and `C` (it is whole) or `T` (it was cut off, or a folder could not be looked into): the end, always there
// Names are bytes: Linux does not say that they are UTF-8.
import { z } from 'zod';
import { FILE_LIST } from './guest-limits.ts';

export {
  FILE_ERRORS,
  FILE_LIST,
  FILE_LIST_DEPTH,
  FILE_PATH_BYTES,
  FILE_READ_BYTES,
  FILE_WRITE_BYTES,
  type FileErrorCode,
} from './guest-limits.ts';

/**
 * Longest listing in bytes: its text, two bytes per entry and folder, and the last entry, which may
 * exceed the limit.
 */
export const FILE_LIST_MAX_BYTES = FILE_LIST.textBytes + 4 * FILE_LIST.entries + 8_192;

/** Name of an errno, such as `ENOSPC`; with `file_system_error`. */
export const errnoName = z.string().regex(/^[A-Z][A-Z0-9]{1,29}$/);
