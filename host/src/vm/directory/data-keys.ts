// Data keys of the VMs that run or are being woken, in files of a memory file system: they outlive
// the daemon, which adopts running VMs, but not the host. The control plane stores them and sends
// them again for the next wake.
import { lstat, mkdir, readdir, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readIfPresent } from '@berth/os/durable-file.ts';
import { nullIf } from '@berth/os/errors.ts';
import { MEMORY_FOLDERS, writableMemoryFolder } from '@berth/os/secrets/memory-folder.ts';
import { SerialQueue } from '@berth/os/serial-queue.ts';

export class DataKeys {
  /** Made with the first key, removed with the last one. */
  readonly folder: string;
  /** A key must not be written while the empty folder is removed. */
  readonly #changes = new SerialQueue();

  /** @param folder on a memory file system */
  constructor(folder: string) {
    this.folder = folder;
  }

  /**
   * The keys of an installation. Rejects without a memory file system, and for a folder that
   * another user can open.
   */
  static async open(instanceId: string, parents = MEMORY_FOLDERS): Promise<DataKeys> {
    const parent = await writableMemoryFolder(parents);
    if (parent === null) {
      throw new Error(
        `cannot hold data keys of VMs: none of ${parents.join(', ')} is a writable tmpfs. Mount one on /dev/shm`,
      );
    }
    const keys = new DataKeys(folderOf(parent, instanceId));
    await keys.#assertPrivate();
    return keys;
  }

  /** Removes all keys of an installation that is gone. */
  static async removeAll(instanceId: string): Promise<void> {
    for (const parent of MEMORY_FOLDERS) await rm(folderOf(parent, instanceId), { recursive: true, force: true });
  }

  /** Null for a VM without a key here. */
  async get(id: string): Promise<string | null> {
    return readIfPresent(join(this.folder, id));
  }

  async set(id: string, key: string): Promise<void> {
    await this.#changes.run(async () => {
      await mkdir(this.folder, { mode: 0o700 }).catch(nullIf('EEXIST'));
      await this.#assertPrivate();
      // Atomic; in memory there is nothing to flush.
      const unfinished = join(this.folder, `${id}.new`);
      await writeFile(unfinished, key, { mode: 0o600 });
      await rename(unfinished, join(this.folder, id));
    });
  }

  async remove(id: string): Promise<void> {
    await this.#changes.run(async () => {
      await rm(join(this.folder, id), { force: true });
      await rmdir(this.folder).catch(nullIf('ENOENT', 'ENOTEMPTY'));
    });
  }

  /** Removes keys of other VMs: their folders were deleted while no daemon ran. */
  async keepOnly(ids: readonly string[]): Promise<void> {
    const known = new Set(ids);
    for (const name of (await readdir(this.folder).catch(nullIf('ENOENT'))) ?? [])
      if (!known.has(name)) await this.remove(name);
  }

  /** Every user may make folders in /dev/shm. */
  async #assertPrivate(): Promise<void> {
    const found = await lstat(this.folder).catch(nullIf('ENOENT'));
    if (found !== null && !(found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o077) === 0))
      throw new Error(`cannot hold data keys of VMs: ${this.folder} belongs to another user. Remove it`);
  }
}

function folderOf(parent: string, instanceId: string): string {
  return join(parent, `berth-keys-${instanceId}`);
}
