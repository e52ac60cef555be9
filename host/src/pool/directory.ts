// On-disk record of each pool VM: `host/pool/<poolId>/{record.json,vm/}`, written before anything
// is made, so that the next daemon finds all of it. The pool owns the folder until its `vm/` has
// moved into a VM's folder. Must not know what runs in it.
import { readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { makeFolderDurably, readIfPresent, writeDurably } from '@berth/os/durable-file.ts';

const RECORD_FILE = 'record.json';

const poolId = z.string().regex(/^pool_[a-z2-7]{20}$/);

const poolRecord = z.strictObject({
  version: z.literal(1),
  id: poolId,
  /** The driver's state; null until something was made. */
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

  /** Ids of all folders in the pool. Ignores entries whose name is no id. */
  async list(): Promise<string[]> {
    const entries = await readdir(this.#root, { withFileTypes: true });
    return entries
      .filter((entry) => entry.isDirectory() && poolId.safeParse(entry.name).success)
      .map((entry) => entry.name);
  }

  /** The driver's folder, beside the record as for a VM. */
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
   * Null if there is no readable record: the driver must then find the folder's resources itself.
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
   * Moves the driver's folder to a VM's; atomically replaces `to`, which is empty or absent.
   * Durable once the parent of `to` is flushed; the next write of the VM's record does that.
   */
  async move(id: string, to: string): Promise<void> {
    await rename(this.driverFolder(id), to);
  }

  /** Removes the folder, the record last. */
  async remove(id: string): Promise<void> {
    await rm(this.driverFolder(id), { recursive: true, force: true });
    await rm(join(this.#root, id), { recursive: true, force: true });
  }
}
