// Deletes and moves files, sets their modes, and creates folders. Once requested of the host, a
// change is completed and recorded in the activity feed, even if the caller disconnects.
import type { MovedFile } from '@berth/contract/files/changes.ts';
import * as calls from '@berth/protocol/calls/files.ts';
import { entryPath, quotedPath } from '../../rules/files/path.ts';
import type { ServiceContext } from '../context/context.ts';
import { fourDigits, noteChange, useFiles, type FileCall, type FileUse } from './use.ts';

/** Deletes a file, a link itself or a folder. */
export async function deleteFile(
  context: ServiceContext,
  call: FileCall,
  given: { path: string; recursive: 'true' | 'false' },
): Promise<{ path: string }> {
  const path = entryPath(given.path);
  const recursive = given.recursive === 'true' ? ({ recursive: 'true' } as const) : {};
  return await useFiles(context, call, changing(quotedPath(path)), async (host, { id }) => {
    await host.call(calls.deleteFile, { vmId: id, query: { path, ...recursive } });
    await noteChange(context, call, 'sandbox_file_deleted', { path });
    return { path };
  });
}

/** Moves a file or folder; refuses an existing target unless `replace`. */
export async function moveFile(
  context: ServiceContext,
  call: FileCall,
  given: MovedFile & { replace: boolean },
): Promise<MovedFile> {
  const [from, to] = [entryPath(given.from), entryPath(given.to)];
  const replace = given.replace ? ({ replace: 'true' } as const) : {};
  return await useFiles(context, call, changing(`${quotedPath(from)} to ${quotedPath(to)}`), async (host, { id }) => {
    await host.call(calls.moveFile, { vmId: id, query: { path: from, to, ...replace } });
    await noteChange(context, call, 'sandbox_file_moved', { from, to });
    return { from, to };
  });
}

/** Sets the permission bits of a file or folder; follows links. */
export async function setFileMode(
  context: ServiceContext,
  call: FileCall,
  given: { path: string; mode: string },
): Promise<{ path: string; mode: string }> {
  const path = entryPath(given.path);
  const mode = fourDigits(given.mode);
  return await useFiles(context, call, changing(quotedPath(path)), async (host, { id }) => {
    await host.call(calls.setFileMode, { vmId: id, query: { path, mode } });
    await noteChange(context, call, 'sandbox_file_mode_changed', { path, mode });
    return { path, mode };
  });
}

/** Creates a folder and its missing parents. */
export async function createFolder(
  context: ServiceContext,
  call: FileCall,
  given: { path: string },
): Promise<{ path: string }> {
  const path = entryPath(given.path);
  return await useFiles(context, call, changing(quotedPath(path)), async (host, { id }) => {
    await host.call(calls.makeFolder, { vmId: id, query: { path } });
    await noteChange(context, call, 'sandbox_folder_created', { path });
    return { path };
  });
}

function changing(what: string): FileUse {
  return { action: 'files_write', what, open: 'the change may or may not have been made' };
}
