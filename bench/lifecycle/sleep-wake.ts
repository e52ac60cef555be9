// Duration of sleep and wake by dirtied memory and RAM size. Measures all combinations in turn,
// round after round; each has its own sandbox, which sleeps while others are measured.
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { figureOf, measured, rounded, type TableRow } from '../world/statistics.ts';
import type { PartFigures } from './part-figures.ts';
import { timed, type BenchWorld } from '../world/installation.ts';

const DIRTY_MIB = [0, 64, 256] as const;
const RAM_GIB = [1, 2, 4] as const;
const COMMAND = 'uname -a';

interface Subject {
  id: string;
  dirtyMib: number;
  ramMib: number;
  sleepMs: number[];
  wakeMs: number[];
  wakeToFirstExecMs: number[];
  /** Size of the snapshot: pages dirtied by the command and by all other programs. */
  snapshotMib: number[];
}

export async function measureSleepWake(world: BenchWorld, rounds: number): Promise<PartFigures> {
  const { client, progress } = world;
  const subjects: Subject[] = [];
  await progress.step('sandboxes of each size, with memory dirtied, put to sleep', async (report) => {
    for (const ramGib of RAM_GIB) {
      for (const dirtyMib of DIRTY_MIB) {
        report(`${ramGib} GiB, ${dirtyMib} MiB dirtied`);
        const id = await client.createAwake();
        if (ramGib > 1) await client.growMemory(id, ramGib);
        // Random data, so that a snapshot can skip no zero or equal pages.
        if (dirtyMib > 0) await client.exec(id, `head -c ${dirtyMib}M /dev/urandom > /dev/shm/dirt && echo dirtied`);
        await client.sleep(id);
        subjects.push({
          id,
          dirtyMib,
          ramMib: ramGib * 1_024,
          sleepMs: [],
          wakeMs: [],
          wakeToFirstExecMs: [],
          snapshotMib: [],
        });
      }
    }
  });
  await progress.step(`${rounds} rounds of wake, exec and sleep with ${subjects.length} sandboxes`, async (report) => {
    for (let round = 0; round < rounds; round += 1) {
      for (const subject of subjects) {
        report(`round ${round + 1} of ${rounds}, ${subject.ramMib} MiB, ${subject.dirtyMib} dirtied`);
        const { id } = subject;
        const startedAt = performance.now();
        await client.wake(id);
        subject.wakeMs.push(performance.now() - startedAt);
        await client.exec(id, COMMAND);
        subject.wakeToFirstExecMs.push(performance.now() - startedAt);
        subject.sleepMs.push(await timed(() => client.sleep(id)));
        subject.snapshotMib.push(await snapshotMib(world.dataFolder, id));
      }
    }
  });
  for (const { id } of subjects) await client.destroy(id);
  const rowsOf = (key: 'sleepMs' | 'wakeToFirstExecMs' | 'snapshotMib', what: string, unit: string): TableRow[] =>
    subjects.map(({ ramMib, dirtyMib, [key]: numbers }) =>
      measured(key, `${what}, ${ramMib} MiB RAM, ${dirtyMib} dirtied`, unit, numbers),
    );
  const medians = (key: 'sleepMs' | 'wakeMs' | 'wakeToFirstExecMs' | 'snapshotMib'): unknown[] =>
    subjects.map(({ dirtyMib, ramMib, [key]: numbers }) => {
      const { median, max } = rounded(figureOf(numbers));
      return { dirtyMib, ramMib, median, max };
    });
  return {
    rows: [
      ...rowsOf('sleepMs', 'sleep', 'ms'),
      ...rowsOf('wakeToFirstExecMs', 'wake to first exec', 'ms'),
      ...rowsOf('snapshotMib', 'snapshot', 'MiB'),
    ],
    json: {
      sleepMs: medians('sleepMs'),
      wakeMs: medians('wakeMs'),
      wakeToFirstExecMs: medians('wakeToFirstExecMs'),
      snapshotMib: medians('snapshotMib'),
    },
  };
}

/** Size of a sleeping sandbox's snapshot. */
export async function snapshotMib(dataFolder: string, id: string): Promise<number> {
  const folder = join(dataFolder, 'host', 'vms', id, 'snapshot');
  const sizes = await Promise.all((await readdir(folder)).map(async (name) => (await stat(join(folder, name))).size));
  return sizes.reduce((sum, size) => sum + size, 0) / 2 ** 20;
}
