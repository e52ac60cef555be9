// The real agents that the image has, from the cache of its builds.
import { join } from 'node:path';
import { waitForLock } from '@berth/os/file-lock.ts';
import { ensureAgent } from '../../../image/src/build/agents.ts';
import { readAgents } from '../../../image/src/build/recipe.ts';
import { defaultCacheFolder } from '../../../image/src/config.ts';

export type RealAgent = 'codex' | 'claude';

/** Version and paths of an agent; downloads it the first time. */
export async function realAgent(name: RealAgent): Promise<{ version: string; paths: Record<string, string> }> {
  const agent = (await readAgents()).find((one) => one.name === name);
  if (agent === undefined) throw new Error(`the recipe has no ${name}`);

  const cacheFolder = defaultCacheFolder(process.env);
  const signal = AbortSignal.timeout(600_000);
  const lock = await waitForLock(join(cacheFolder, 'image.lock'), () => undefined, signal);
  try {
    const workFolder = join(cacheFolder, 'work');
    const files = await ensureAgent(agent, { cacheFolder, workFolder, onProgress: () => undefined, signal });
    return { version: agent.version, paths: { [name]: join(files, agent.program) } };
  } finally {
    await lock.release();
  }
}
