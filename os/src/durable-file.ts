// Small files that are whole or absent after a crash of the process or of the machine: written
// beside, flushed, renamed, folder flushed. The name written beside is fixed, so that a crash
// leaves at most one of it, which the next write replaces; writers of one path take turns for it.
import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { dirname, join, basename } from 'node:path';
import { Turns } from './turns.ts';

/** By path, while anybody writes it. */
const writers = new Map<string, { turns: Turns; count: number }>();

/**
 * Replaces the file's content. When this resolves the new content survives a power cut; before, the
 * old one or the new one is there, whole. Of several at once on one path the last that was called
 * has the last word.
 */
export async function writeDurably(path: string, content: string, mode = 0o600): Promise<void> {
  const mine = writers.get(path) ?? { turns: new Turns(), count: 0 };
  writers.set(path, mine);
  mine.count += 1;
  try {
    await mine.turns.take(() => replace(path, content, mode));
  } finally {
    mine.count -= 1;
    if (mine.count === 0) writers.delete(path);
  }
}

async function replace(path: string, content: string, mode: number): Promise<void> {
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

/**
 * Makes a folder, private to this user, whose entry in its parent survives a power cut. Existing
 * ones are kept.
 */
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
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;

    throw error;
  }
}
