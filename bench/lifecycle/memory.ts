// What an idle machine costs in memory that nothing else shares, with more and more of them beside
// each other.
import { setTimeout as delay } from 'node:timers/promises';
import { unsharedMemoryOf } from '../world/guest.ts';
import { figureOf, type Figure } from '../world/statistics.ts';
import type { BenchWorld } from '../world/installation.ts';

/** A machine counts as idle after it had nothing to do for this long. */
const IDLE_MS = 5_000;

export interface MemoryFigures {
  vms: number;
  vmUnsharedMib: Figure;
  guestUnsharedMib: Figure;
}

/** @param counts numbers of machines, growing */
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
