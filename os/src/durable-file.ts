// Small files that are whole or absent after a crash of the process or host: written to a temporary
// file, flushed, renamed, folder flushed. The temporary name is fixed, so that a crash leaves at
// most one, replaced by the next write. Writers of one path take turns.
import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { dirname, join, basename } from 'node:path';
import { nullIf } from './errors.ts';
import { SerialQueue } from './serial-queue.ts';

interface FileOwner {
  uid: number;
  gid: number;
}

/** By path, while it has writers. */
const writers = new Map<string, { turns: SerialQueue; count: number }>();

/**
 * Replaces the file's content. Once resolved, the new content survives a power cut; before that,
 * the file is either old or new, never mixed. Of concurrent writes to a path the last call wins.
 */
export async function writeDurably(path: string, content: string, mode = 0o600, owner?: FileOwner): Promise<void> {
  const mine = writers.get(path) ?? { turns: new SerialQueue(), count: 0 };
  writers.set(path, mine);
  mine.count += 1;
  try {
    await mine.turns.run(() => replace(path, content, mode, owner));
  } finally {
    mine.count -= 1;
    if (mine.count === 0) writers.delete(path);
  }
}

async function replace(path: string, content: string, mode: number, owner?: FileOwner): Promise<void> {
  const folder = dirname(path);
  const beside = join(folder, `.${basename(path)}.tmp`);
  const file = await open(beside, 'w', mode);
  try {
    // Before the rename: a reader of the new file may not be the writer's user.
    if (owner !== undefined) await file.chown(owner.uid, owner.gid);
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(beside, path);
  await flushFolder(folder);
}

/** Makes a private folder whose entry in its parent survives a power cut. Keeps an existing one. */
export async function makeFolderDurably(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  await flushFolder(dirname(path));
}

/** Makes removals and renames inside a folder durable. */
export async function flushFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** The file's text; null if it does not exist. */
export async function readIfPresent(path: string): Promise<string | null> {
  return readFile(path, 'utf8').catch(nullIf('ENOENT'));
}
