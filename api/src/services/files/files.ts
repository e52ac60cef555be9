// Files of a sandbox: data plane, directly through the host, without a queue. Wakes a stopped
// sandbox first if its project has wake-on-use.
import type { FileContent, FilesSnapshot, FolderListing, WrittenFile } from '@berth/contract/files/files.ts';
import type { SandboxAction } from '@berth/contract/sandboxes/state.ts';
import type { HostClient } from '../../hosts/client.ts';
import type { Actor } from '../../rules/access/access.ts';
import { bytesOfContent, contentOfBytes } from '../../rules/files/content.ts';
import { filePath, folderPath } from '../../rules/files/path.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import type { LocatedSandboxRow } from '../../store/sandboxes/sandboxes.ts';
import type { ServiceContext } from '../context/context.ts';
import { explainFileFailure } from './failure.ts';
import { readListing, type FoldersListed } from './listing.ts';
import { ensureAwake, type SandboxInUse } from '../sandboxes/use.ts';

/** Caller and sandbox of a file operation; the signal aborts it. */
export interface FileCall {
  actor: Actor;
  sandbox: LocatedSandboxRow;
  signal: AbortSignal;
  /** Counts bytes that the call keeps. Throws `too_much_in_flight`. */
  hold(this: void, bytes: number): void;
}

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

export async function readFile(context: ServiceContext, call: FileCall, given: { path: string }): Promise<FileContent> {
  const path = filePath(given.path);
  const bytes = await use(context, call, 'files_read', path, (host, { id }) =>
    host.readFile(id, path, { signal: call.signal, onBytes: (bytes) => call.hold(COPIES * bytes) }),
  );
  return { path, ...contentOfBytes(bytes), size: bytes.length };
}

/**
 * Writes a file atomically. Once requested of the host, the write completes and is recorded in the
 * activity feed, even if the caller disconnects.
 */
export async function writeFile(
  context: ServiceContext,
  call: FileCall,
  given: Pick<FileContent, 'path' | 'content' | 'encoding'>,
): Promise<WrittenFile> {
  const bytes = bytesOfContent(given);
  const path = filePath(given.path);
  return await use(context, call, 'files_write', path, async (host, sandbox) => {
    const { size } = await host.writeFile(sandbox.id, path, bytes);
    await insertActivity(context.db, {
      orgId: sandbox.org_id,
      projectId: sandbox.project_id,
      sandboxId: sandbox.id,
      actor: call.actor,
      kind: 'sandbox_file_written',
      details: { path, size },
    });
    return { path, size };
  });
}

function listed(context: ServiceContext, call: FileCall, path: string, depth: number): Promise<FoldersListed> {
  return use(context, call, 'files_read', path, async (host, { id }) =>
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

async function use<T>(
  context: ServiceContext,
  { actor, sandbox, signal }: FileCall,
  action: Extract<SandboxAction, `files_${string}`>,
  path: string,
  work: (host: HostClient, sandbox: SandboxInUse) => Promise<T>,
): Promise<T> {
  const inUse = await ensureAwake(context, actor, sandbox, { action, signalOfUse: 'file' }, signal);
  try {
    return await work(context.hosts.at(inUse.host_url), inUse);
  } catch (error) {
    throw await explainFileFailure(context, { sandboxId: inUse.id, action, path }, error);
  }
}
