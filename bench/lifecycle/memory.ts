// Unshared memory of an idle VM, for growing numbers of VMs.
import { setTimeout as delay } from 'node:timers/promises';
import { unsharedMemoryOf } from '../world/guest.ts';
import { figureOf, type Figure } from '../world/statistics.ts';
import type { BenchWorld } from '../world/installation.ts';

/** Idle time before a VM is measured. */
const IDLE_MS = 5_000;

export interface MemoryFigures {
  vms: number;
  vmUnsharedMib: Figure;
  guestUnsharedMib: Figure;
}

/** @param counts numbers of VMs, ascending */
export async function measureMemory(
  { client, progress }: BenchWorld,
  counts: readonly number[],
): Promise<MemoryFigures[]> {
  const ids: string[] = [];
  const figures: MemoryFigures[] = [];
  for (const vms of counts) {
    await progress.step(`memory of ${vms} idle machines`, async (report) => {
      while (ids.length < vms) {
        report(`${ids.length} of ${vms}`);
        const id = await client.createAwake();
        ids.push(id);
        await client.exec(id, 'uname -a');
      }
      await delay(IDLE_MS);
      const memory = [];
      for (const id of ids) memory.push(await unsharedMemoryOf(id));
      figures.push({
        vms,
        vmUnsharedMib: figureOf(memory.map(({ vmMib }) => vmMib)),
        guestUnsharedMib: figureOf(memory.map(({ guestMib }) => guestMib)),
      });
    });
  }
  for (const id of ids) await client.destroy(id);
  return figures;
}
