// A control group whose CPU time the kernel counts: controller cpuacct (v1) or cgroup v2. Counts
// all processes in it and below, also those that have exited. Needs root.
import { existsSync } from 'node:fs';
import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode } from '@berth/os/errors.ts';

const V1 = '/sys/fs/cgroup/cpuacct';
const V2 = '/sys/fs/cgroup';

export class CpuGroup {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async make(name: string): Promise<CpuGroup> {
    return await CpuGroup.#makeIn(existsSync(V1) ? V1 : V2, name);
  }

  /** An existing group. */
  static at(folder: string): CpuGroup {
    return new CpuGroup(folder);
  }

  static async #makeIn(parent: string, name: string): Promise<CpuGroup> {
    const folder = join(parent, name);
    await mkdir(folder);
    return new CpuGroup(folder);
  }

  async makeChild(name: string): Promise<CpuGroup> {
    return await CpuGroup.#makeIn(this.folder, name);
  }

  /** Moves a process in; its later children follow. No-op if it has exited. */
  async add(pid: number): Promise<void> {
    try {
      await writeFile(join(this.folder, 'cgroup.procs'), String(pid));
    } catch (error) {
      if (!hasCode(error, 'ESRCH')) throw error;
    }
  }

  /** CPU time so far. */
  async milliseconds(): Promise<number> {
    const read = (name: string): Promise<string> => readFile(join(this.folder, name), 'utf8');
    return this.folder.startsWith(`${V1}/`)
      ? Number(await read('cpuacct.usage')) / 1e6
      : Number(/^usage_usec (\d+)/m.exec(await read('cpu.stat'))?.[1]) / 1e3;
  }

  /** Keeps a group that still has processes, which no longer matter. */
  async remove(): Promise<void> {
    try {
      await rmdir(this.folder);
    } catch (error) {
      if (!hasCode(error, 'EBUSY', 'ENOTEMPTY')) throw error;
    }
  }
}
