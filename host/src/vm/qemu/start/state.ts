// The driver's state of a VM, in the VM's record and beside its disk. The slot is recorded before
// anything runs in it, the process as soon as it exists. The VM's template stays recorded as long
// as its disk exists.
import { join } from 'node:path';
import { z } from 'zod';
import { DriverError, type DriverState } from '../../driver.ts';
import { readIfPresent, writeDurably } from '@berth/os/durable-file.ts';
import { isSame, type ProcessIdentity } from '@berth/os/process-identity.ts';
import { machineHash } from '../machine/machine.ts';
import { virtualization } from '../machine/cpu-models.ts';
import type { RestoreBase } from '../template/bases.ts';

const vmProcess = z.object({ pid: z.int(), startTicks: z.string(), bootId: z.string() });

const vmState = z.object({
  vmId: z.string(),
  templateId: z.string(),
  /** Hash of the options of its latest QEMU. */
  machineHash: z.string(),
  /** Accelerator and processor of its latest QEMU; absent: those of the template. */
  virtualization: virtualization.optional(),
  /** Disk size at the latest start; {@link readDiskGib} includes later growth. */
  diskGib: z.int().min(1),
  /** Null while it sleeps. */
  slot: z.int().min(0).nullable(),
  process: vmProcess.optional(),
});
export type VmState = z.infer<typeof vmState>;

/** Null if nothing was saved. */
export function parseState(state: DriverState | null): VmState | null {
  const parsed = vmState.safeParse(state);
  return parsed.success ? parsed.data : null;
}

/** Rejects with {@link DriverError} if nothing was saved. */
export function stateOf(state: DriverState): VmState {
  const parsed = parseState(state);
  if (parsed === null) throw new DriverError("the VM's record lacks its driver state");

  return parsed;
}

/** State of a VM that has neither slot nor process yet. */
export function newState(vmId: string, { template, accelerator, cpuModel }: RestoreBase, diskGib: number): VmState {
  return {
    vmId,
    templateId: template.templateId,
    machineHash: machineHash({ accelerator, cpuModel }),
    virtualization: { accelerator, cpuModel },
    diskGib,
    slot: null,
  };
}

/** The VM's QEMU; rejects if it has exited. */
export async function livingProcess({ process }: VmState): Promise<ProcessIdentity> {
  if (process === undefined || !(await isSame(process))) throw new DriverError('the process of the VM has ended');

  return process;
}

/**
 * Beside the disk, which a compromised QEMU may write: the file size limit is never derived from
 * the disk itself.
 */
const DISK_SIZE_FILE = 'disk-gib';

/** Survives a crash: the disk may have that size from now on. */
export async function writeDiskGib(folder: string, diskGib: number): Promise<void> {
  await writeDurably(join(folder, DISK_SIZE_FILE), `${diskGib}\n`);
}

/** The size of a VM's disk, at least that of its latest start. */
export async function readDiskGib(folder: string, state: Pick<VmState, 'diskGib'>): Promise<number> {
  const grown = z.coerce
    .number<string>()
    .int()
    .min(1)
    .safeParse(await readIfPresent(join(folder, DISK_SIZE_FILE)));
  return Math.max(state.diskGib, grown.success ? grown.data : 0);
}
