// Small files that are whole or absent after a crash of the process or of the machine: written beside, flushed, renamed, folder flushed.
// One writer at a time for each path: the name written beside is fixed, so that a crash leaves at most one of it, which the next write replaces.
import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { dirname, join, basename } from 'node:path';

/** Replaces the file's content. When this resolves the new content survives a power cut; before, the old one or the new one is there, whole. */
export async function writeDurably(path: string, content: string, mode = 0o600): Promise<void> {
  const folder = dirname(path);
  const beside = join(folder, `.${basename(path)}.tmp`);
  const file = await open(beside, 'w', mode);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(beside, path);
  await flushFolder(folder);
}

/** Makes a folder, private to this user, whose entry in its parent survives a power cut. Existing ones are kept. */
export async function makeFolderDurably(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  await flushFolder(dirname(path));
}

/** Makes the removals and renames inside a folder survive a power cut. */
export async function flushFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** The file's text; null when there is no such file. */
export async function readIfPresent(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
      return null;
    }
    throw error;
  }
}
