// What the driver keeps of a VM on disk, in the VM's record, and beside its disk. The slot is there
// before anything runs in it, the process as soon as there is one; what the VM was made from stays
// as long as its disk.
import { join } from 'node:path';
import { z } from 'zod';
import { DriverError, type DriverState } from '../../driver.ts';
import { readIfPresent, writeDurably } from '@berth/os/durable-file.ts';

const vmProcess = z.object({ pid: z.int(), startTicks: z.string(), bootId: z.string() });

const vmState = z.object({
  vmId: z.string(),
  templateId: z.string(),
  /** Of the options its QEMU was started with last. */
  machineHash: z.string(),
  /** Its disk's size when it was started last; {@link readDiskGib} knows of later growth. */
  diskGib: z.int().min(1),
  /** Null while it sleeps. */
  slot: z.int().min(0).nullable(),
  process: vmProcess.optional(),
});
export type VmState = z.infer<typeof vmState>;

/** Null for a state that nothing was saved in. */
export function parseState(state: DriverState | null): VmState | null {
  const parsed = vmState.safeParse(state);
  return parsed.success ? parsed.data : null;
}

/** Rejects with {@link DriverError} when nothing was saved. */
export function stateOf(state: DriverState): VmState {
  const parsed = parseState(state);
  if (parsed === null) throw new DriverError('nothing is on record of how the VM was made');

  return parsed;
}

/**
 * Beside the disk, which a QEMU in foreign hands may write to: what its file may grow to is never
 * taken from the disk itself.
 */
const DISK_SIZE_FILE = 'disk-gib';

/** Survives a crash: the disk may have that size from now on. */
export async function writeDiskGib(folder: string, diskGib: number): Promise<void> {
  await writeDurably(join(folder, DISK_SIZE_FILE), `${diskGib}\n`);
}

/** The size of a VM's disk, at least that of when it was started last. */
export async function readDiskGib(folder: string, state: Pick<VmState, 'diskGib'>): Promise<number> {
  const grown = z.coerce
    .number<string>()
    .int()
    .min(1)
    .safeParse(await readIfPresent(join(folder, DISK_SIZE_FILE)));
  return Math.max(state.diskGib, grown.success ? grown.data : 0);
}
