// Files of a sandbox: data plane, directly through the host, without a queue.
import { createHash } from 'node:crypto';
import type { FileContent, FilesSnapshot, FileStat, FolderListing, WrittenFile } from '@berth/contract/files/files.ts';
import { statFile as statCall } from '@berth/protocol/calls/files.ts';
import { freeChunk } from '@berth/protocol/http/free-chunk.ts';
import { bytesOfContent, contentOfBytes } from '../../rules/files/content.ts';
import { filePath, folderPath, quotedPath } from '../../rules/files/path.ts';
import type { ServiceContext } from '../context/context.ts';
import { readListing, timeOf, type FoldersListed } from './listing.ts';
import { MAY_BE_WRITTEN, noteChange, optionsOf, readingOf, useFiles, type FileCall, type WriteOptions } from './use.ts';

/** Copies of a file or listing in memory at once, of roughly its size: bytes and JSON. */
const COPIES = 2;

/** Lists a folder. Every function here throws the errors of `ensureAwake` and of its route. */
export async function listFiles(
  context: ServiceContext,
  call: FileCall,
  { path }: { path: string },
): Promise<FolderListing> {
  const folder = folderPath(path);
  const { truncated, directories } = await listed(context, call, folder, 1);
  return { path: folder, truncated, entries: directories[folder] ?? [] };
}

/** Lists a folder and its subfolders, `depth` levels in total. */
export async function snapshotFiles(
  context: ServiceContext,
  call: FileCall,
  { path, depth }: { path: string; depth: number },
): Promise<FilesSnapshot> {
  const folder = folderPath(path);
  return { path: folder, ...(await listed(context, call, folder, depth)) };
}

/** Describes a file, a folder or a link itself. */
export async function statFile(context: ServiceContext, call: FileCall, given: { path: string }): Promise<FileStat> {
  const path = folderPath(given.path);
  const query = { path };
  const found = await useFiles(context, call, readingOf(path), (host, { id }) =>
    host.call(statCall, { vmId: id, query }, { signal: call.signal }),
  );
  const { kind, size, mtimeSeconds, mode, target, resolved } = found;
  return {
    path,
    kind,
    size,
    modifiedAt: timeOf(mtimeSeconds),
    mode,
    ...(target === undefined ? {} : { linkTarget: target }),
    ...(resolved === undefined ? {} : { resolvesTo: resolved }),
  };
}

export async function readFile(context: ServiceContext, call: FileCall, given: { path: string }): Promise<FileContent> {
  const path = filePath(given.path);
  const bytes = await useFiles(context, call, readingOf(path), (host, { id }) =>
    host.readFile(id, path, { signal: call.signal, onBytes: (bytes) => call.hold(COPIES * bytes) }),
  );
  return { path, ...contentOfBytes(bytes), size: bytes.length, sha256: sha256Of(bytes) };
}

/**
 * Writes a file atomically. Once requested of the host, the write completes and is recorded in the
 * activity feed, even if the caller disconnects.
 */
export async function writeFile(
  context: ServiceContext,
  call: FileCall,
  given: Pick<FileContent, 'path' | 'content' | 'encoding'> & WriteOptions,
): Promise<WrittenFile> {
  const path = filePath(given.path);
  const bytes = bytesOfContent(given);
  // The text is counted since its arrival.
  call.hold(bytes.length);
  const writing = { action: 'files_write', what: quotedPath(path), open: MAY_BE_WRITTEN } as const;
  return await useFiles(context, call, writing, async (host, sandbox) => {
    const { size } = await host.writeFile(sandbox.id, { path, ...optionsOf(given) }, bytes);
    const sha256 = sha256Of(bytes);
    freeChunk(bytes);
    await noteChange(context, call, 'sandbox_file_written', { path, size });
    return { path, size, sha256 };
  });
}

function sha256Of(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function listed(context: ServiceContext, call: FileCall, path: string, depth: number): Promise<FoldersListed> {
  return useFiles(context, call, readingOf(path), async (host, { id }) =>
    readListing(
      await host.listFiles(id, path, depth, {
        signal: call.signal,
        onBytes: (bytes) => call.hold(COPIES * bytes),
      }),
      path,
      depth,
    ),
  );
}
