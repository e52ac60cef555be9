// Folder of the lab's disks, kept between runs, and of one run's files, which are removed.
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { waitForLock, type HeldLock } from '@berth/os/file-lock.ts';

const KEPT = '/var/cache/berth-lab';
const RUN_PREFIX = 'run-';

export class LabFolder {
  readonly kept = KEPT;
  /** Removed at the end. */
  readonly run: string;
  readonly #lock: HeldLock;

  private constructor(run: string, lock: HeldLock) {
    this.run = run;
    this.#lock = lock;
  }

  /** Waits for another run: each takes all cores. Removes the leftovers of killed runs. */
  static async open(signal: AbortSignal): Promise<LabFolder> {
    await mkdir(KEPT, { recursive: true, mode: 0o700 });
    const lock = await waitForLock(join(KEPT, 'lock'), () => console.log('• waiting for another run'), signal);
    for (const name of await readdir(KEPT))
      if (name.startsWith(RUN_PREFIX)) await rm(join(KEPT, name), { recursive: true });
    return new LabFolder(await mkdtemp(join(KEPT, RUN_PREFIX)), lock);
  }

  async close(): Promise<void> {
    await rm(this.run, { recursive: true, force: true });
    await this.#lock.release();
  }
}
