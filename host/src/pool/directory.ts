// What is on disk of each machine in the pool: `host/pool/<poolId>/{record.json,vm/}`, written
// before anything is made, so that the next daemon finds all of it. The folder is the pool's until
// the machine's `vm/` has moved into a VM's folder. Must not know what runs in it.
import { readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { makeFolderDurably, readIfPresent, writeDurably } from '@berth/os/durable-file.ts';

const RECORD_FILE = 'record.json';

const poolId = z.string().regex(/^pool_[a-z2-7]{20}$/);

const poolRecord = z.strictObject({
  version: z.literal(1),
  id: poolId,
  /** What the driver keeps; null: nothing was made yet. */
  driverState: z.record(z.string(), z.unknown()).nullable(),
});
type PoolRecord = z.infer<typeof poolRecord>;

export class PoolDirectory {
  readonly #root: string;

  /** @param root absolute path of `host/pool`, on the file system of `host/vms` */
  constructor(root: string) {
    this.#root = root;
  }

  async open(): Promise<void> {
    await makeFolderDurably(this.#root);
  }

  /**
   * Ids of every machine that has a folder. Entries whose name is no id are not ours and are left
   * alone.
   */
  async list(): Promise<string[]> {
    const entries = await readdir(this.#root, { withFileTypes: true });
    return entries
      .filter((entry) => entry.isDirectory() && poolId.safeParse(entry.name).success)
      .map((entry) => entry.name);
  }

  /** The driver's folder of a machine; beside the record, as a VM's. */
  driverFolder(id: string): string {
    return join(this.#root, id, 'vm');
  }

  async makeFolders(id: string): Promise<void> {
    await makeFolderDurably(join(this.#root, id));
    await makeFolderDurably(this.driverFolder(id));
  }

  async write(record: PoolRecord): Promise<void> {
    await writeDurably(join(this.#root, record.id, RECORD_FILE), `${JSON.stringify(record)}\n`);
  }

  /**
   * Null when there is none that can be understood: then the driver must find by itself what
   * belongs to the folder.
   */
  async read(id: string): Promise<PoolRecord | null> {
    const text = await readIfPresent(join(this.#root, id, RECORD_FILE));
    try {
      return poolRecord.parse(JSON.parse(text ?? ''));
    } catch (error) {
      if (error instanceof SyntaxError || error instanceof z.ZodError) return null;

      throw error;
    }
  }

  /**
   * Moves the driver's folder of a machine to be that of a VM; `to` is an empty folder or nothing,
   * and is replaced at once. Survives a power cut as soon as the folder around `to` is flushed,
   * which the write of the VM's next record does.
   */
  async move(id: string, to: string): Promise<void> {
    await rename(this.driverFolder(id), to);
  }

  /** Removes what is left of it, the record last. */
  async remove(id: string): Promise<void> {
    await rm(this.driverFolder(id), { recursive: true, force: true });
    await rm(join(this.#root, id), { recursive: true, force: true });
  }
}
