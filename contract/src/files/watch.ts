// Changes below a folder of a sandbox, as they happen.
import { z } from 'zod';
import { exampleChanges } from '../route/examples.ts';
import { FILE_CHANGES, FILE_KINDS, FILE_WATCH_CURSOR, FILE_WATCH_LIMITS } from '../route/file-watch.ts';
import { HELD } from '../route/held.ts';
import { defineRoute } from '../route/route.ts';
import { sandboxParams } from '../sandboxes/sandboxes.ts';
import { FILE_CALL_ERRORS, folderPath } from './files.ts';

const { folders, kept, unusedSeconds } = FILE_WATCH_LIMITS;

const fileChange = z
  .strictObject({
    path: z.string().describe('Absolute path: of the folder itself, or below it.'),
    change: z
      .enum(FILE_CHANGES)
      .describe(
        '`created`: created, moved here, or put in the place of another. `changed`: its content, mode, owner or ' +
          'time; of a folder also a change of a name in it that is not UTF-8. `removed`: removed or moved away, a ' +
          'folder with all below it.',
      ),
    kind: z
      .enum(FILE_KINDS)
      .optional()
      .describe('`other`: a socket, device or FIFO. Absent if it is gone and was no folder.'),
  })
  .meta({ id: 'FileChange', description: 'A change below a watched folder.' });

const fileChanges = z
  .strictObject({
    path: z.string().describe('Absolute path of the folder.'),
    changes: z
      .array(fileChange)
      .describe('Oldest first. Earlier changes of a path that a later one replaces may be left out.'),
    cursor: z.string().describe('Value of `cursor` for the next request.'),
    reset: z
      .boolean()
      .describe(
        'Whether changes since the cursor may be missing: list the folder anew, and continue with the new cursor. ' +
          `After ${unusedSeconds} s without a request, more than ${kept.changes} changes, or a restart in the sandbox.`,
      ),
  })
  .meta({ id: 'FileChanges', description: 'Changes below a folder, and the cursor behind them.' });
export type FileChanges = z.infer<typeof fileChanges>;

/**
 * Begins a watch without a cursor, and follows it with one. Only the first uses the sandbox, and
 * wakes it if its project has wake-on-use. The specification has no such route:
 * docs/spec-gaps/files.md.
 */
export const watchFiles = defineRoute({
  name: 'watchFiles',
  summary:
    'Returns the changes below a folder after the cursor. Without a cursor, no change and the cursor of this moment: ' +
    `list the folder then. Held ${HELD} until there is a change; a held request does not keep the sandbox awake`,
  method: 'GET',
  path: '/v1/sandboxes/{sandboxId}/files/changes',
  auth: ['session', 'api_key'],
  permission: 'sandbox.files.read',
  request: {
    params: sandboxParams,
    query: z.strictObject({
      path: folderPath,
      recursive: z
        .enum(['true', 'false'])
        .default('false')
        .describe(`Whether folders below are watched too, at most ${folders}.`),
      cursor: z
        .string()
        .regex(FILE_WATCH_CURSOR, 'must be the cursor of a response of this route')
        .optional()
        .meta({
          description: 'The `cursor` of the previous response for this folder.',
          examples: ['9f86d081884c7d65.12'],
        }),
    }),
  },
  response: { status: 200, body: fileChanges },
  errors: [...FILE_CALL_ERRORS, 'file_call_unsupported', 'watch_limit', 'watch_too_large'],
  activity: null,
  holds: true,
  published: true,
  example: {
    query: { path: '/code', recursive: 'true', cursor: '9f86d081884c7d65.12' },
    answer: exampleChanges,
  },
});
