// CPU time of test files with all processes they start, also those that outlive their parent: a
// control group per file.
import { CpuGroup } from './cpu-group.ts';

const JOIN_ACCOUNT = new URL('join-cpu-account.ts', import.meta.url).href;

interface CpuAccount {
  /** Arguments and environment with which a Node process joins. */
  execArgv: string[];
  environment: NodeJS.ProcessEnv;
  /** CPU seconds so far. The group is removed after its last process exited. */
  close(): Promise<number>;
}

export class CpuAccounts {
  readonly #group: CpuGroup;

  private constructor(group: CpuGroup) {
    this.#group = group;
  }

  static async open(): Promise<CpuAccounts> {
    return new CpuAccounts(await CpuGroup.make(`berth-tests-${process.pid}`));
  }

  async openFor(file: string): Promise<CpuAccount> {
    const group = await this.#group.makeChild(file.replaceAll('/', '_'));
    return {
      execArgv: ['--import', JOIN_ACCOUNT],
      environment: { BERTH_TEST_CPU_ACCOUNT: group.folder },
      close: async () => {
        const milliseconds = await group.milliseconds();
        await group.remove();
        return milliseconds / 1e3;
      },
    };
  }

  async close(): Promise<void> {
    await this.#group.remove();
  }
}
