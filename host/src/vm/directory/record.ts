// The on-disk record of each VM: the truth about what this host runs, written before the thing it tells of and read back after a crash.
// Owns the layout of `host/vms/<vmId>/`; the guest's secret is a file of its own (0600), so that a record can be shown and logged.
import { readdir, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { vmId, vmSpec } from '@berth/protocol/host.ts';
import { z } from 'zod';
import { flushFolder, makeFolderDurably, readIfPresent, writeDurably } from './durable-file.ts';

/**
 * ```
 * creating -> running -> dead -> destroying -> (folder gone, fence left)
 *     \________________/   (failed create; `everRan` tells the two kinds of dead apart)
 * ```
 */
export const vmRecord = z.strictObject({
  version: z.literal(1),
  id: vmId,
  epoch: z.int().min(1),
  spec: vmSpec,
  status: z.enum(['creating', 'running', 'dead', 'destroying']),
  /** Why it is dead. */
  reason: z.string().max(4_096).nullable(),
  /** It was `running` once: its disk may hold what nobody else has, so it is never made anew under the same epoch. */
  everRan: z.boolean(),
  /** The driver confirmed that process, slot and network are gone. Until then the VM counts as using them. */
  freed: z.boolean(),
  /** What the driver keeps; written before anything it tells of is made. */
  driverState: z.record(z.string(), z.unknown()).nullable(),
});
export type VmRecord = z.infer<typeof vmRecord>;

/** What reading a VM's folder can find. */
export type FoundRecord = { kind: 'record'; record: VmRecord } | { kind: 'none' } | { kind: 'corrupt'; why: string };

export class VmDirectory {
  readonly #root: string;

  /** @param root absolute path of `host/vms` */
  constructor(root: string) {
    this.#root = root;
  }

  async open(): Promise<void> {
    await makeFolderDurably(this.#root);
  }

  /** Ids of every VM that has a folder, whatever is in it. Entries whose name is no VM id are not ours and are left alone. */
  async list(): Promise<string[]> {
    const entries = await readdir(this.#root, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory() && vmId.safeParse(entry.name).success).map((entry) => entry.name);
  }

  /** The driver's folder of a VM: beside the record, never around it, because a jailed process may write there. */
  driverFolder(id: string): string {
    return join(this.#root, id, 'vm');
  }

  async makeFolders(id: string): Promise<void> {
    await makeFolderDurably(join(this.#root, id));
    await makeFolderDurably(this.driverFolder(id));
  }

  async read(id: string): Promise<FoundRecord> {
    const text = await readIfPresent(this.#recordPath(id));
    if (text === null) {
      return { kind: 'none' };
    }
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return { kind: 'corrupt', why: 'the record is not JSON' };
    }
    const parsed = vmRecord.safeParse(value);
    if (!parsed.success) {
      return { kind: 'corrupt', why: `the record has another form: ${z.prettifyError(parsed.error)}` };
    }
    return parsed.data.id === id ? { kind: 'record', record: parsed.data } : { kind: 'corrupt', why: 'the record is of another VM' };
  }

  async write(record: VmRecord): Promise<void> {
    await writeDurably(this.#recordPath(record.id), `${JSON.stringify(record, null, 1)}\n`);
  }

  async writeSecret(id: string, secret: string): Promise<void> {
    await writeDurably(this.#secretPath(id), secret);
  }

  async readSecret(id: string): Promise<string | null> {
    return readIfPresent(this.#secretPath(id));
  }

  /** Removes the driver's folder and the secret; the record stays. */
  async removeContents(id: string): Promise<void> {
    await rm(this.driverFolder(id), { recursive: true, force: true });
    await rm(this.#secretPath(id), { force: true });
  }

  /** Removes all of it, the record last: until then a crash leaves something that says what to remove. */
  async remove(id: string): Promise<void> {
    await this.removeContents(id);
    const folder = join(this.#root, id);
    for (const name of await namesIn(folder)) {
      if (name !== RECORD_FILE) {
        await rm(join(folder, name), { recursive: true, force: true });
      }
    }
    await rm(this.#recordPath(id), { force: true });
    await rmdir(folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') {
        throw error;
      }
    });
    await flushFolder(this.#root);
  }

  #recordPath(id: string): string {
    return join(this.#root, id, RECORD_FILE);
  }

  #secretPath(id: string): string {
    return join(this.#root, id, 'guest-secret');
  }
}

const RECORD_FILE = 'record.json';

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
      return [];
    }
    throw error;
  }
}
