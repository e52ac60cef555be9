// The call of changes below a folder.
import { z } from 'zod';
import {
  FILE_CALL_SECONDS,
  FILE_CHANGES,
  FILE_KINDS,
  FILE_PATH_BYTES,
  FILE_WATCH_CURSOR,
  FILE_WATCH_LIMITS,
  PROCESS_LIMITS,
} from '../guest-limits.ts';
import { defineCall } from './define.ts';
import { errors, path, UNSUPPORTED } from './files.ts';

const { response } = FILE_WATCH_LIMITS;
const cursor = z.string().regex(FILE_WATCH_CURSOR);

const fileChange = z.strictObject({
  /** The watched folder itself, or below it. */
  path: z
    .string()
    .max(FILE_PATH_BYTES)
    .regex(/^(?:\/|(?:\/(?!\.{1,2}(?:\/|$))[^/\0]+)+)$/, 'must be an absolute path without empty, `.` or `..` names')
    .refine((text) => text.isWellFormed()),
  change: z.enum(FILE_CHANGES),
  /** Absent: unknown. */
  kind: z.enum(FILE_KINDS).optional(),
});
export type GuestFileChange = z.infer<typeof fileChange>;

/**
 * Changes after the cursor; with `waitMs`, held until there is one. Without a cursor, no change and
 * the cursor of now. Begins the watch unless it is known. `reset`: changes since the cursor may be
 * missing, and the next cursor is of now.
 */
export const watchFiles = defineCall({
  name: 'watchFiles',
  target: 'pass-through',
  method: 'GET',
  path: '/files/changes',
  query: z.strictObject({
    path,
    recursive: z.literal('true').optional(),
    cursor: cursor.optional(),
    waitMs: z.coerce.number<string>().int().min(0).max(PROCESS_LIMITS.waitMs).optional(),
  }),
  form: 'json',
  response: z
    .strictObject({ changes: z.array(fileChange).max(response.changes), cursor, reset: z.boolean() })
    .refine(({ changes, reset }) => !reset || changes.length === 0, { error: 'a reset has changes' }),
  // Each byte escaped.
  responseBytes: 6 * (response.textBytes + FILE_PATH_BYTES) + 64 * response.changes + 1_024,
  deadlineMs: FILE_CALL_SECONDS * 1_000 + PROCESS_LIMITS.waitMs,
  marginMs: 10_000,
  errors,
  statuses: UNSUPPORTED,
  repeatable: true,
  since: 11,
});
