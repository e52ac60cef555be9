// On-disk record of each VM: the truth about this host's VMs, written before each change and read
// back after a crash. Owns the layout of `host/vms/<vmId>/`. The guest's secret and keys are
// separate files (secret-folders.ts), so that records can be shown and logged.
import { readdir, rename, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { vmDeathCode, vmId, vmSpec, vmWoke } from '@berth/protocol/host.ts';
import { z } from 'zod';
import { nullIf } from '@berth/os/errors.ts';
import { RECORD_FILE } from './record-folders.ts';
import { SecretFolders } from './secret-folders.ts';
import { flushFolder, makeFolderDurably, readIfPresent, writeDurably } from '@berth/os/durable-file.ts';

const driverState = z.record(z.string(), z.unknown());

/**
 * ```
 * creating -> running -> sleeping -> asleep -> waking -> running
 *     |          |           |                   |
 *     +----------+-----------+-------------------+--> dead --> waking
 *
 *     any --> destroying -> (folder gone, fence left)
 * ```
 * `everRan` distinguishes a dead VM with a disk from one that never came up. Fields with a default
 * are missing in records of earlier daemons.
 */
const vmRecord = z.strictObject({
  version: z.literal(1),
  id: vmId,
  epoch: z.int().min(1),
  spec: vmSpec,
  status: z.enum(['creating', 'running', 'sleeping', 'asleep', 'waking', 'dead', 'destroying']),
  /**
   * The driver's id of the VM if it differs from the VM's id: a pool VM was made before the create.
   */
  machineId: z.string().min(1).max(128).nullable().default(null),
  /**
   * Reason of death; while asleep, why the snapshot is unusable. Kept during a wake for the boot of
   * the disk.
   */
  reason: z.string().max(4_096).nullable(),
  deathCode: vmDeathCode.nullable().default(null),
  /** Last time a dead VM's process was seen running; null if unknown. */
  lastAliveUnixMs: z.int().nullable().default(null),
  /**
   * True once it was `running`: its disk may hold unique data, so it is never made anew under the
   * same epoch.
   */
  everRan: z.boolean(),
  /**
   * True once the driver confirmed that process, slot and network are gone. Until then the VM
   * counts as using them.
   */
  freed: z.boolean(),
  /** The driver's state, written before anything it names is made. */
  driverState: driverState.nullable(),
  /**
   * True if `snapshot/` holds a usable snapshot. False from just before the VM resumes: its disk
   * then diverges from the snapshot.
   */
  snapshot: z.boolean().default(false),
  /**
   * During a wake, once the driver saved its own state: the state that the next attempt from the
   * snapshot needs.
   */
  sleptState: driverState.nullable().default(null),
  /**
   * During a wake: the fully loaded VM was resumed, so an interrupted wake is finished, not undone.
   */
  continued: z.boolean().default(false),
  /** Size requested by the wake in progress. `spec` is the VM's actual size. */
  sizeAsked: vmSpec.pick({ vcpu: true, memoryMib: true, diskGib: true }).nullable().default(null),
  /** Source of the last wake (snapshot or disk), and why. */
  woke: vmWoke.nullable().default(null),
  /** Its agents use the model gateway, which listens for it as soon as it runs again. */
  models: z.boolean().default(false),
});
export type VmRecord = z.infer<typeof vmRecord>;

/** Result of reading a VM's folder. */
export type FoundRecord = { kind: 'record'; record: VmRecord } | { kind: 'none' } | { kind: 'corrupt'; why: string };

export class VmDirectory extends SecretFolders {
  /**
   * Folder of a sleeping VM's memory and devices: beside the driver's folder, invisible to the
   * jailed process.
   */
  snapshotFolder(id: string): string {
    return join(this.root, id, 'snapshot');
  }

  /**
   * Makes an empty snapshot folder. The removal of an earlier snapshot is durable when it resolves.
   */
  async makeSnapshotFolder(id: string): Promise<void> {
    await this.removeSnapshot(id);
    await makeFolderDurably(this.snapshotFolder(id));
  }

  async removeSnapshot(id: string): Promise<void> {
    await rm(this.snapshotFolder(id), { recursive: true, force: true });
    await flushFolder(join(this.root, id));
  }

  async read(id: string): Promise<FoundRecord> {
    const text = await readIfPresent(this.recordPath(id));
    if (text === null) return { kind: 'none' };

    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return { kind: 'corrupt', why: 'the record is not JSON' };
    }
    const parsed = vmRecord.safeParse(value);
    if (!parsed.success) return { kind: 'corrupt', why: `the record is invalid: ${z.prettifyError(parsed.error)}` };

    return parsed.data.id === id
      ? { kind: 'record', record: parsed.data }
      : { kind: 'corrupt', why: 'the record belongs to another VM' };
  }

  async write(record: VmRecord): Promise<void> {
    await writeDurably(this.recordPath(record.id), `${JSON.stringify(record, null, 1)}\n`);
  }

  /**
   * Removes the data key, the driver's folder, the snapshot, the secrets and the names; keeps the
   * record.
   */
  async removeContents(id: string): Promise<void> {
    await this.forgetDataKey(id);
    await rm(this.driverFolder(id), { recursive: true, force: true });
    await rm(this.snapshotFolder(id), { recursive: true, force: true });
    await this.removeSecrets(id);
  }

  /** Removes the VM's folder, the record last: it tells what to remove after a crash. */
  async remove(id: string): Promise<void> {
    await this.removeContents(id);
    const folder = join(this.root, id);
    for (const name of (await readdir(folder).catch(nullIf('ENOENT'))) ?? [])
      if (name !== RECORD_FILE) await rm(join(folder, name), { recursive: true, force: true });

    await rm(this.recordPath(id), { force: true });
    await rmdir(folder).catch(nullIf('ENOENT'));
    await flushFolder(this.root);
  }

  /**
   * Moves aside the folder of a VM with an unreadable record, disk included, for an operator.
   * {@link removeSetAside} deletes it.
   */
  async setAside(id: string): Promise<void> {
    await this.removeSetAside(id);
    await rename(join(this.root, id), this.#setAsidePath(id)).catch(nullIf('ENOENT'));
    await flushFolder(this.root);
  }

  async removeSetAside(id: string): Promise<void> {
    await rm(this.#setAsidePath(id), { recursive: true, force: true });
  }

  /** Not a valid VM id, so that it is not taken for a VM. */
  #setAsidePath(id: string): string {
    return join(this.root, `${id}.damaged`);
  }
}
