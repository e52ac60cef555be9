// Format and maximum length of a folder listing.
// A listing is a sequence of records: the folders level by level, each followed by its entries.
// Links are not followed.
// `D` <path below the requested folder, each name after a slash; empty for that folder itself> NUL
// `d` <name of a folder> NUL, or `f` of a regular file, `l` of a link, `o` of anything else
// `m` <size in bytes> space <seconds since 1970> NUL: after each of these; a link has its own.
// Guest daemons before version 5 send none, and `f` for everything but folders. With details, space
// <mode, four octal digits> before the NUL.
// `t` <target> NUL: after the facts of a link, with details
// `E` and `C` (complete) or `T` (truncated, or a folder was unreadable): always at the end
// Names are bytes: Linux does not require UTF-8.
import { z } from 'zod';
import { FILE_LIST } from './guest-limits.ts';

export { FILE_ERRORS, FILE_LIST, FILE_READ_BYTES, FILE_WRITE_BYTES, type FileErrorCode } from './guest-limits.ts';

/**
 * Longest listing in bytes: its text, two bytes per entry and folder, 50 for size, time, mode and
 * target of an entry, and the last entry, which may exceed the limit.
 */
export const FILE_LIST_MAX_BYTES = FILE_LIST.textBytes + 54 * FILE_LIST.entries + 8_192;

/** Name of an errno, such as `ENOSPC`; with `file_system_error`. */
export const errnoName = z.string().regex(/^[A-Z][A-Z0-9]{1,29}$/);
