// Unshared memory of an idle VM, for growing numbers of VMs.
import { setTimeout as delay } from 'node:timers/promises';
import { unsharedMemoryOf } from '../world/guest.ts';
import { figureOf, rounded, type Figure, type TableRow } from '../world/statistics.ts';
import type { PartFigures } from './part-figures.ts';
import type { BenchWorld } from '../world/installation.ts';

/** Idle time before a VM is measured. */
const IDLE_MS = 5_000;

interface MemoryFigures {
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

export function memoryFigures(figures: readonly MemoryFigures[]): PartFigures {
  const rows = figures.flatMap(({ vms, vmUnsharedMib, guestUnsharedMib }): TableRow[] => [
    { label: `idle VM of ${vms}, unshared memory`, unit: 'MiB', count: vms, figure: vmUnsharedMib },
    { label: "  the guest's share of it", unit: 'MiB', count: vms, figure: guestUnsharedMib },
  ]);
  const idleByVms = figures.map(({ vms, vmUnsharedMib, guestUnsharedMib }) => ({
    vms,
    vmUnsharedMib: rounded(vmUnsharedMib),
    guestUnsharedMib: rounded(guestUnsharedMib),
  }));
  const { vmUnsharedMib: idleVmUnsharedMib, guestUnsharedMib: idleGuestUnsharedMib } = idleByVms.at(-1) ?? {};
  return { rows, json: { idleVmUnsharedMib, idleGuestUnsharedMib, idleByVms } };
}
