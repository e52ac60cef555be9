// On-disk record of each pool VM: `host/pool/<poolId>/{record.json,vm/}`, written before anything
// is made, so that the next daemon finds all of it. The pool owns the folder until its `vm/` has
// moved into a VM's folder. Must not know what runs in it.
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { readIfPresent, writeDurably } from '@berth/os/durable-file.ts';
import { RecordFolders } from '../vm/directory/record-folders.ts';

const poolId = z.string().regex(/^pool_[a-z2-7]{20}$/);

const poolRecord = z.strictObject({
  version: z.literal(1),
  id: poolId,
  /** The driver's state; null until something was made. */
  driverState: z.record(z.string(), z.unknown()).nullable(),
});
type PoolRecord = z.infer<typeof poolRecord>;

export class PoolDirectory extends RecordFolders {
  /** @param root absolute path of `host/pool`, on the file system of `host/vms` */
  constructor(root: string) {
    super(root, poolId);
  }

  async write(record: PoolRecord): Promise<void> {
    await writeDurably(this.recordPath(record.id), `${JSON.stringify(record)}\n`);
  }

  /**
   * Null if there is no readable record: the driver must then find the folder's resources itself.
   */
  async read(id: string): Promise<PoolRecord | null> {
    const text = await readIfPresent(this.recordPath(id));
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
    await rm(join(this.root, id), { recursive: true, force: true });
  }
}
