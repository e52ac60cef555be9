// Changes below a folder of a sandbox. To begin a watch uses the sandbox, to follow it does not:
// the guest has the watch, and its memory comes back after a sleep.
import type { FileChanges } from '@berth/contract/files/watch.ts';
import { watchFiles as watchCall } from '@berth/protocol/calls/file-watch.ts';
import type { ResponseOf } from '@berth/protocol/calls/define.ts';
import type { HostClient } from '../../hosts/client.ts';
import { HostError } from '../../hosts/error.ts';
import { folderPath } from '../../rules/files/path.ts';
import { requireLegal } from '../../rules/sandboxes/action.ts';
import type { ServiceContext } from '../context/context.ts';
import { located } from '../sandboxes/use.ts';
import { explainFileFailure } from './failure.ts';
import { readingOf, useFiles, type FileCall } from './use.ts';

/** Copies of a response in memory: as received, and as sent. */
const COPIES = 2;
/** Size of a change in a response, without its path. */
const CHANGE_BYTES = 64;

interface Asked {
  path: string;
  recursive: 'true' | 'false';
  cursor?: string | undefined;
  waitMs: number;
}

type Watched = ResponseOf<typeof watchCall>;

/** Changes after the cursor; with a wait, once there is one. Without a cursor, that of now. */
export async function watchFiles(context: ServiceContext, call: FileCall, asked: Asked): Promise<FileChanges> {
  const path = folderPath(asked.path);
  const { recursive, ...from } = asked.cursor === undefined ? { recursive: asked.recursive } : asked;
  const query = { ...from, path, ...(recursive === 'true' ? ({ recursive } as const) : {}) };
  const read = async (host: HostClient, { id }: { id: string }, signal: AbortSignal): Promise<Watched> => {
    const found = await host.call(watchCall, { vmId: id, query }, { signal });
    requireBelow(path, found);
    return found;
  };
  const { cursor } = asked;
  const found =
    cursor === undefined
      ? await useFiles(context, call, readingOf(path), (host, sandbox) => read(host, sandbox, call.signal))
      : await follow(context, call, { path, cursor }, read);
  call.hold(COPIES * found.changes.reduce((sum, change) => sum + CHANGE_BYTES + 3 * change.path.length, 0));
  return { path, ...found };
}

/** A call that is no use: a sandbox falls asleep while its folders are watched. */
async function follow(
  context: ServiceContext,
  { sandbox, signal }: FileCall,
  { path, cursor }: { path: string; cursor: string },
  read: (host: HostClient, sandbox: { id: string }, signal: AbortSignal) => Promise<Watched>,
): Promise<Watched> {
  requireLegal('files_read', sandbox.status);
  const { ending } = context.holds;
  const awake = located(sandbox);
  try {
    return await read(context.hosts.at(awake.host_url), awake, AbortSignal.any([signal, ending]));
  } catch (error) {
    signal.throwIfAborted();
    if (ending.aborted) return { changes: [], cursor, reset: false };
    throw await explainFileFailure(context, { sandboxId: sandbox.id, ...readingOf(path) }, error);
  }
}

function requireBelow(folder: string, { changes }: Watched): void {
  const above = folder === '/' ? '/' : `${folder}/`;
  if (!changes.every(({ path }) => path === folder || path.startsWith(above)))
    throw new HostError('guest_unreachable', 'the guest reports a change outside the watched folder');
}
