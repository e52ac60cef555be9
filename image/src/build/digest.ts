// SHA-256 of texts, files and folders, for the recipe and the manifest. Knows nothing of images.
import { createHash } from 'node:crypto';
import { lstat, readFile, readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';

export function sha256Of(text: string | Buffer): string {
  return createHash('sha256').update(text).digest('hex');
}

interface FolderEntry {
  /** Relative to the folder, with `/`. */
  path: string;
  type: 'folder' | 'file' | 'link';
  executable: boolean;
}

/** All entries of a folder, sorted by code units of the path. Folders precede their content. */
export async function listFolder(folder: string): Promise<FolderEntry[]> {
  const entries: FolderEntry[] = [];
  const visit = async (prefix: string): Promise<void> => {
    const names = (await readdir(join(folder, prefix))).sort();
    for (const name of names) {
      const path = prefix === '' ? name : `${prefix}/${name}`;
      const stat = await lstat(join(folder, path));
      const executable = (stat.mode & 0o100) !== 0;
      if (stat.isDirectory()) {
        entries.push({ path, type: 'folder', executable });
        await visit(path);
      } else if (stat.isSymbolicLink()) {
        entries.push({ path, type: 'link', executable: false });
      } else if (stat.isFile()) {
        entries.push({ path, type: 'file', executable });
      } else {
        throw new Error(`${join(folder, path)} is neither a file nor a folder nor a link`);
      }
    }
  };
  await visit('');
  return entries;
}

/**
 * Digest of a folder's names, contents and executable bits, as in a checkout; ignores owners and
 * times.
 */
export async function sha256OfFolder(folder: string): Promise<string> {
  const hash = createHash('sha256');
  for (const entry of await listFolder(folder)) {
    const path = join(folder, entry.path);
    // Read whole files: streams for thousands of small files cost ten times as much.
    const content =
      entry.type === 'file' ? sha256Of(await readFile(path)) : entry.type === 'link' ? await readlink(path) : '';
    hash.update(JSON.stringify([entry.path, entry.type, entry.executable && entry.type === 'file', content]));
  }
  return hash.digest('hex');
}
