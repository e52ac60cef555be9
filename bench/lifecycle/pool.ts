// Time from create to the first command's response with a VM waiting in the pool: one by one, and
// as a burst within the pool's size; beside gVisor's `runsc run` of the same command.
import { Runsc } from '../world/runsc.ts';
import { figuresByKey, measured } from '../world/statistics.ts';
import type { BenchWorld } from '../world/installation.ts';
import type { PartFigures } from './part-figures.ts';

const COMMAND = 'uname -a';

export async function measurePool(
  world: BenchWorld,
  { creates, burst }: { creates: number; burst: number },
): Promise<PartFigures> {
  const { client, progress, poolHas } = world;
  const createMs: number[] = [];
  const toFirstExecMs: number[] = [];
  const burstMs: number[] = [];
  const runscMs: number[] = [];
  const runsc = await Runsc.open(COMMAND);
  try {
    await progress.step(`${creates} creates one after another, each with a full pool`, async (report) => {
      // The first one is unmeasured: its code is not yet compiled.
      for (let index = -1; index < creates; index += 1) {
        report(`${index + 1} of ${creates}`);
        // A pool VM may be away for its exercise.
        await poolHas(Math.max(1, burst - 1));
        const startedAt = performance.now();
        const id = await client.createAwake();
        const awakeMs = performance.now() - startedAt;
        await client.exec(id, COMMAND);
        const execMs = performance.now() - startedAt;
        const runMs = await runsc.run();
        await client.destroy(id);
        if (index < 0) continue;
        createMs.push(awakeMs);
        toFirstExecMs.push(execMs);
        runscMs.push(runMs);
      }
    });
    await progress.step(`a burst of ${burst} creates with as many machines in the pool`, async () => {
      await poolHas(burst);
      const ids = await Promise.all(
        Array.from({ length: burst }, async () => {
          const startedAt = performance.now();
          const id = await client.createAwake();
          await client.exec(id, COMMAND);
          burstMs.push(performance.now() - startedAt);
          return id;
        }),
      );
      await Promise.all(ids.map((id) => client.destroy(id)));
    });
  } finally {
    await runsc.close();
  }
  const rows = [
    measured('poolCreateMs', 'create from the pool to running', 'ms', createMs),
    measured('poolCreateToFirstExecMs', 'create from the pool to first exec', 'ms', toFirstExecMs),
    measured(`burst${burst}CreateToFirstExecMs`, `burst of ${burst} from the pool to first exec`, 'ms', burstMs),
    measured('runscRunMs', 'runsc run (gVisor) of the same', 'ms', runscMs),
  ];
  return { rows, json: { ...figuresByKey(rows), runscVersion: runsc.version } };
}
