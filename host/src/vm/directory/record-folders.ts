// Layout that VMs and pool VMs share: a folder per id, with a record, and beside it the driver's
// folder. The record is never inside that, because a jailed process may write there.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { z } from 'zod';
import { makeFolderDurably } from '@berth/os/durable-file.ts';

export const RECORD_FILE = 'record.json';

export class RecordFolders {
  protected readonly root: string;
  readonly #id: z.ZodType<string>;

  protected constructor(root: string, id: z.ZodType<string>) {
    this.root = root;
    this.#id = id;
  }

  async open(): Promise<void> {
    await makeFolderDurably(this.root);
  }

  /** Ids of all folders, with any content. Ignores entries whose name is no id. */
  async list(): Promise<string[]> {
    const entries = await readdir(this.root, { withFileTypes: true });
    return entries
      .filter((entry) => entry.isDirectory() && this.#id.safeParse(entry.name).success)
      .map((entry) => entry.name);
  }

  driverFolder(id: string): string {
    return join(this.root, id, 'vm');
  }

  async makeFolders(id: string): Promise<void> {
    await makeFolderDurably(join(this.root, id));
    await makeFolderDurably(this.driverFolder(id));
  }

  protected recordPath(id: string): string {
    return join(this.root, id, RECORD_FILE);
  }
}
