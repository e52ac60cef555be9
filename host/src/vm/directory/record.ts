// The on-disk record of each VM: the truth about what this host runs, written before the thing it
// tells of and read back after a crash. Owns the layout of `host/vms/<vmId>/`; the guest's secret
// and keys are files of their own (0600), so that a record can be shown and logged.
import { readdir, rename, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { vmDeathCode, vmId, vmSpec, vmWoke } from '@berth/protocol/host.ts';
import { z } from 'zod';
import type { Names } from '../../guest/identity.ts';
import { flushFolder, makeFolderDurably, readIfPresent, writeDurably } from '@berth/os/durable-file.ts';

const driverState = z.record(z.string(), z.unknown());

/**
 * ```
 * creating -> running -> sleeping -> asleep -> waking -> running
 *     |          |           |                   |
 *     +----------+-----------+-------------------+--> dead --> waking     any --> destroying -> (folder gone, fence left)
 * ```
 * `everRan` tells a dead VM that has a disk from one that never came up. Fields with a default are
 * missing in records of earlier daemons.
 */
const vmRecord = z.strictObject({
  version: z.literal(1),
  id: vmId,
  epoch: z.int().min(1),
  spec: vmSpec,
  status: z.enum(['creating', 'running', 'sleeping', 'asleep', 'waking', 'dead', 'destroying']),
  /**
   * The name by which the driver knows the machine, where it is not the VM's id: it was made before
   * the VM was asked for.
   */
  machineId: z.string().min(1).max(128).nullable().default(null),
  /**
   * Why it is dead; while it is asleep, why its snapshot is of no use. Kept while it wakes: a boot
   * of its disk names it.
   */
  reason: z.string().max(4_096).nullable(),
  deathCode: vmDeathCode.nullable().default(null),
  /** When a dead VM's process was last seen to run; null where nobody knows. */
  lastAliveUnixMs: z.int().nullable().default(null),
  /**
   * It was `running` once: its disk may hold what nobody else has, so it is never made anew under
   * the same epoch.
   */
  everRan: z.boolean(),
  /**
   * The driver confirmed that process, slot and network are gone. Until then the VM counts as using
   * them.
   */
  freed: z.boolean(),
  /** What the driver keeps; written before anything it tells of is made. */
  driverState: driverState.nullable(),
  /**
   * The folder `snapshot/` holds what a wake starts from. False from the moment the machine is
   * about to run on: its disk parts from the snapshot then.
   */
  snapshot: z.boolean().default(false),
  /**
   * While it wakes, once the driver saved a state of its own: the one that a wake from the snapshot
   * needs, for the next attempt.
   */
  sleptState: driverState.nullable().default(null),
  /**
   * While it wakes: its machine was let run with everything loaded, so that a wake which was cut
   * short is finished and not undone.
   */
  continued: z.boolean().default(false),
  /** While it wakes: the size it was asked to have. `spec` is what its machine has. */
  sizeAsked: vmSpec.pick({ vcpu: true, memoryMib: true, diskGib: true }).nullable().default(null),
  /** How it came back the last time. */
  woke: vmWoke.nullable().default(null),
});
export type VmRecord = z.infer<typeof vmRecord>;

const names = z.strictObject({
  machineId: z.string(),
  sshHostKey: z.strictObject({ privateKey: z.string(), publicKey: z.string() }),
});

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

  /**
   * Ids of every VM that has a folder, whatever is in it. Entries whose name is no VM id are not
   * ours and are left alone.
   */
  async list(): Promise<string[]> {
    const entries = await readdir(this.#root, { withFileTypes: true });
    return entries
      .filter((entry) => entry.isDirectory() && vmId.safeParse(entry.name).success)
      .map((entry) => entry.name);
  }

  /**
   * The driver's folder of a VM: beside the record, never around it, because a jailed process may
   * write there.
   */
  driverFolder(id: string): string {
    return join(this.#root, id, 'vm');
  }

  /**
   * Where a sleeping VM's memory and devices are: beside the driver's folder, out of the jailed
   * process's sight.
   */
  snapshotFolder(id: string): string {
    return join(this.#root, id, 'snapshot');
  }

  /**
   * The snapshot's folder, empty: whatever an earlier sleep left there is gone, durably, when this
   * resolves.
   */
  async makeSnapshotFolder(id: string): Promise<void> {
    await this.removeSnapshot(id);
    await makeFolderDurably(this.snapshotFolder(id));
  }

  async removeSnapshot(id: string): Promise<void> {
    await rm(this.snapshotFolder(id), { recursive: true, force: true });
    await flushFolder(join(this.#root, id));
  }

  async makeFolders(id: string): Promise<void> {
    await makeFolderDurably(join(this.#root, id));
    await makeFolderDurably(this.driverFolder(id));
  }

  async read(id: string): Promise<FoundRecord> {
    const text = await readIfPresent(this.#recordPath(id));
    if (text === null) return { kind: 'none' };

    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return { kind: 'corrupt', why: 'the record is not JSON' };
    }
    const parsed = vmRecord.safeParse(value);
    if (!parsed.success)
      return { kind: 'corrupt', why: `the record has another form: ${z.prettifyError(parsed.error)}` };

    return parsed.data.id === id
      ? { kind: 'record', record: parsed.data }
      : { kind: 'corrupt', why: 'the record is of another VM' };
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

  /** The names and keys that the VM was given, private because of the host key. */
  async writeNames(id: string, { machineId, sshHostKey }: Names): Promise<void> {
    await writeDurably(this.#namesPath(id), JSON.stringify({ machineId, sshHostKey }));
  }

  /** Null when there are none that can be understood. */
  async readNames(id: string): Promise<Names | null> {
    const text = await readIfPresent(this.#namesPath(id));
    try {
      return names.parse(JSON.parse(text ?? ''));
    } catch (error) {
      if (error instanceof SyntaxError || error instanceof z.ZodError) return null;

      throw error;
    }
  }

  /**
   * The secret that a wake is about to give the guest, beside the one in force: after a crash the
   * guest may know either.
   */
  async writeNextSecret(id: string, secret: string): Promise<void> {
    await writeDurably(this.#nextSecretPath(id), secret);
  }

  async readNextSecret(id: string): Promise<string | null> {
    return readIfPresent(this.#nextSecretPath(id));
  }

  /**
   * The guest took the next secret: it is the one in force from now on. Nothing happens when there
   * is none.
   */
  async promoteNextSecret(id: string): Promise<void> {
    await rename(this.#nextSecretPath(id), this.#secretPath(id)).catch(unlessMissing);
    await flushFolder(join(this.#root, id));
  }

  /** Removes the driver's folder, the snapshot, the secrets and the names; the record stays. */
  async removeContents(id: string): Promise<void> {
    await rm(this.driverFolder(id), { recursive: true, force: true });
    await rm(this.snapshotFolder(id), { recursive: true, force: true });
    await rm(this.#namesPath(id), { force: true });
    await rm(this.#nextSecretPath(id), { force: true });
    await rm(this.#secretPath(id), { force: true });
  }

  /**
   * Removes all of it, the record last: until then a crash leaves something that says what to
   * remove.
   */
  async remove(id: string): Promise<void> {
    await this.removeContents(id);
    const folder = join(this.#root, id);
    for (const name of await namesIn(folder))
      if (name !== RECORD_FILE) await rm(join(folder, name), { recursive: true, force: true });

    await rm(this.#recordPath(id), { force: true });
    await rmdir(folder).catch(unlessMissing);
    await flushFolder(this.#root);
  }

  /**
   * Out of the way with all that it holds: the disk of a VM whose record nobody understands, for an
   * operator to look at. Gone with {@link removeSetAside}.
   */
  async setAside(id: string): Promise<void> {
    await this.removeSetAside(id);
    await rename(join(this.#root, id), this.#setAsidePath(id)).catch(unlessMissing);
    await flushFolder(this.#root);
  }

  async removeSetAside(id: string): Promise<void> {
    await rm(this.#setAsidePath(id), { recursive: true, force: true });
  }

  /** No VM's id, so that nobody takes it for one. */
  #setAsidePath(id: string): string {
    return join(this.#root, `${id}.damaged`);
  }

  #recordPath(id: string): string {
    return join(this.#root, id, RECORD_FILE);
  }

  #secretPath(id: string): string {
    return join(this.#root, id, 'guest-secret');
  }

  #namesPath(id: string): string {
    return join(this.#root, id, 'guest-names');
  }

  #nextSecretPath(id: string): string {
    return join(this.#root, id, 'guest-secret-next');
  }
}

const RECORD_FILE = 'record.json';

function unlessMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error;
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];

    throw error;
  }
}
