// The private folder of a download, beside its target.
import { createHash } from 'node:crypto';
import { lstat, mkdtemp, readdir, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';

/** Age of a folder that is removed: a container may share the host name, but not the processes. */
const LEFT_MS = 86_400_000;
/** On a shared file system, other hosts have folders too. */
const HOST = createHash('sha256').update(hostname()).digest('hex').slice(0, 8);
const NAME = new RegExp(`^\\.berth-cp-${HOST}-(\\d+)-\\w{6}$`);

/** Calls `work` with a new folder and removes it, and those that killed processes left. */
export async function withStage<T>(beside: string, work: (stage: string) => Promise<T>): Promise<T> {
  await removeLeft(beside);
  const stage = await mkdtemp(join(beside, `.berth-cp-${HOST}-${process.pid}-`));
  try {
    return await work(stage);
  } finally {
    await rm(stage, { recursive: true, force: true });
  }
}

/** Removes old folders of this user whose process has ended. Failures do not matter. */
async function removeLeft(beside: string): Promise<void> {
  for (const name of await readdir(beside).catch(() => [])) {
    const [, pid] = NAME.exec(name) ?? [];
    if (pid === undefined || isAlive(Number(pid))) continue;
    const path = join(beside, name);
    const found = await lstat(path).catch(() => null);
    const isOwn = found?.isDirectory() === true && found.uid === process.getuid?.();
    if (isOwn && Date.now() - found.mtimeMs > LEFT_MS)
      await rm(path, { recursive: true, force: true }).catch(() => undefined);
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
