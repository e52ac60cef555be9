// CPU time of test files with all processes they start, also those that outlive their parent: a
// control group per file. Needs root and the controller cpuacct (v1) or cgroup v2.
import { existsSync } from 'node:fs';
import { mkdir, readFile, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode } from '@berth/os/errors.ts';

const V1 = '/sys/fs/cgroup/cpuacct';
const V2 = '/sys/fs/cgroup';
const JOIN_ACCOUNT = new URL('join-cpu-account.ts', import.meta.url).href;

interface CpuAccount {
  /** Arguments and environment with which a Node process joins. */
  execArgv: string[];
  environment: NodeJS.ProcessEnv;
  /** CPU seconds so far. The group is removed after its last process exited. */
  close(): Promise<number>;
}

export class CpuAccounts {
  readonly #folder: string;
  readonly #read: (folder: string) => Promise<number>;

  private constructor(folder: string, read: (folder: string) => Promise<number>) {
    this.#folder = folder;
    this.#read = read;
  }

  static async open(): Promise<CpuAccounts> {
    const name = `berth-tests-${process.pid}`;
    const accounts = existsSync(V1)
      ? new CpuAccounts(join(V1, name), async (folder) => Number(await readText(folder, 'cpuacct.usage')) / 1e9)
      : new CpuAccounts(
          join(V2, name),
          async (folder) => Number(/^usage_usec (\d+)/m.exec(await readText(folder, 'cpu.stat'))?.[1]) / 1e6,
        );
    await mkdir(accounts.#folder);
    return accounts;
  }

  async openFor(file: string): Promise<CpuAccount> {
    const folder = join(this.#folder, file.replaceAll('/', '_'));
    await mkdir(folder);
    return {
      execArgv: ['--import', JOIN_ACCOUNT],
      environment: { BERTH_TEST_CPU_ACCOUNT: folder },
      close: async () => {
        const seconds = await this.#read(folder);
        await removeIfEmpty(folder);
        return seconds;
      },
    };
  }

  async close(): Promise<void> {
    await removeIfEmpty(this.#folder);
  }
}

function readText(folder: string, name: string): Promise<string> {
  return readFile(join(folder, name), 'utf8');
}

/** Keeps a group that still has processes, which no longer matter. */
async function removeIfEmpty(folder: string): Promise<void> {
  try {
    await rmdir(folder);
  } catch (error) {
    if (!hasCode(error, 'EBUSY', 'ENOTEMPTY')) throw error;
  }
}
