// Changes of the files of a sandbox beyond a write: delete, move, set the mode, create a folder.
import { z } from 'zod';
import { defineRoute } from '../route/route.ts';
import { sandboxParams } from '../sandboxes/sandboxes.ts';
import { FILE_CALL_ERRORS, filePath, newMode } from './files.ts';

const changedPath = z
  .strictObject({ path: z.string() })
  .meta({ id: 'ChangedPath', description: 'The absolute path of a deleted file or created folder.' });

const movedFile = z
  .strictObject({ from: z.string(), to: z.string() })
  .meta({ id: 'MovedFile', description: 'The absolute paths of a moved file or folder.' });
export type MovedFile = z.infer<typeof movedFile>;

export const deleteFile = defineRoute({
  name: 'deleteFile',
  summary: 'Deletes a file, a link or a folder; a link is not followed',
  method: 'DELETE',
  path: '/v1/sandboxes/{sandboxId}/file',
  auth: ['session', 'api_key'],
  permission: 'sandbox.files.write',
  request: {
    params: sandboxParams,
    query: z.strictObject({
      path: filePath,
      recursive: z
        .enum(['true', 'false'])
        .default('false')
        .describe('Deletes the content of a folder. After a failure some of it may be deleted.'),
    }),
  },
  response: { status: 200, body: changedPath },
  errors: [...FILE_CALL_ERRORS, 'not_a_file', 'folder_not_empty'],
  activity: 'sandbox_file_deleted',
  published: true,
  example: { query: { path: 'old.py' }, answer: { path: '/code/old.py' } },
});

export const moveFile = defineRoute({
  name: 'moveFile',
  summary: 'Moves or renames a file or folder atomically; a link is not followed',
  method: 'POST',
  path: '/v1/sandboxes/{sandboxId}/files/move',
  auth: ['session', 'api_key'],
  permission: 'sandbox.files.write',
  request: {
    params: sandboxParams,
    body: z.strictObject({
      from: filePath,
      to: filePath.describe('The new path, with the name. Its folder must exist.'),
      replace: z.boolean().default(false).describe('Replaces an existing file, or an empty folder.'),
    }),
  },
  response: { status: 200, body: movedFile },
  errors: [...FILE_CALL_ERRORS, 'not_a_file', 'file_exists', 'folder_not_empty', 'guest_disk_full'],
  activity: 'sandbox_file_moved',
  published: true,
  example: {
    body: { from: 'hello.py', to: 'src/hello.py' },
    answer: { from: '/code/hello.py', to: '/code/src/hello.py' },
  },
});

const changedMode = z
  .strictObject({ path: z.string(), mode: z.string() })
  .meta({ id: 'ChangedMode', description: 'The absolute path and the mode of a file or folder.' });

export const setFileMode = defineRoute({
  name: 'setFileMode',
  summary: 'Sets the permission bits of a file or folder; a link is followed',
  method: 'POST',
  path: '/v1/sandboxes/{sandboxId}/files/mode',
  auth: ['session', 'api_key'],
  permission: 'sandbox.files.write',
  request: {
    params: sandboxParams,
    body: z.strictObject({
      path: filePath,
      mode: newMode.describe(
        'Permission bits in octal, such as `0755`. Set-user-ID, set-group-ID and sticky are cleared.',
      ),
    }),
  },
  response: { status: 200, body: changedMode },
  errors: [...FILE_CALL_ERRORS, 'not_a_file', 'file_call_unsupported'],
  activity: 'sandbox_file_mode_changed',
  published: true,
  example: { body: { path: 'run.sh', mode: '755' }, answer: { path: '/code/run.sh', mode: '0755' } },
});

export const createFolder = defineRoute({
  name: 'createFolder',
  summary: 'Creates a folder and its missing parents',
  method: 'POST',
  path: '/v1/sandboxes/{sandboxId}/files/folder',
  auth: ['session', 'api_key'],
  permission: 'sandbox.files.write',
  request: { params: sandboxParams, body: z.strictObject({ path: filePath }) },
  response: { status: 201, body: changedPath },
  errors: [...FILE_CALL_ERRORS, 'file_exists', 'guest_disk_full'],
  activity: 'sandbox_folder_created',
  published: true,
  example: { body: { path: 'src/lib' }, answer: { path: '/code/src/lib' } },
});
