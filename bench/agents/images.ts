// Cost of the agents for sandboxes without sessions: the image with them beside one without, in
// unshared memory of idle VMs and on the disk.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { readConfig } from '@berth/machine/config/config.ts';
import type { Progress } from '@berth/machine/output/progress.ts';
import { setUp } from '../../machine/src/setup/setup.ts';
import { measureMemory } from '../lifecycle/memory.ts';
import { withWorld } from '../world/installation.ts';
import type { Figure } from '../world/statistics.ts';

const run = promisify(execFile);
const VMS = 4;
const SET_UP_DEADLINE_MS = 30 * 60_000;

interface ImageFigures {
  vmMib: Figure;
  imageMib: number;
}

export async function measureImage(progress: Progress, agents: string): Promise<ImageFigures> {
  // Its own image, also where the environment names another one.
  const environment = { ...process.env, BERTH_AGENTS: agents, BERTH_IMAGE_FOLDER: '' };
  const signal = AbortSignal.timeout(SET_UP_DEADLINE_MS);
  const { BERTH_IMAGE_FOLDER: folder = '' } = await setUp({
    ...{ config: readConfig({}, environment), progress, environment, signal },
  });
  const pool = { BERTH_POOL_MIN: '0', BERTH_POOL_MAX: '0' };
  const [memory] = await withWorld(progress, { BERTH_IMAGE_FOLDER: folder, ...pool }, (world) =>
    measureMemory(world, [VMS]),
  );
  if (memory === undefined) throw new Error('no memory was measured');
  const { stdout } = await run('du', ['--block-size=1M', '--summarize', folder]);
  return { vmMib: memory.vmUnsharedMib, imageMib: Number.parseInt(stdout, 10) };
}
