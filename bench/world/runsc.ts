// gVisor's `runsc run` of one command in a fresh container on the host's root file system,
// read-only, without a network.
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installPackages, updateLists } from '@berth/os/apt/apt.ts';
import { hasCode } from '@berth/os/errors.ts';

const run = promisify(execFile);
const DEADLINE_MS = 60_000;

export class Runsc {
  readonly version: string;
  readonly #folder: string;
  #runs = 0;

  private constructor(version: string, folder: string) {
    this.version = version;
    this.#folder = folder;
  }

  /** Installs Debian's package when it is missing, and writes the bundle. */
  static async open(command: string): Promise<Runsc> {
    const versionOf = async (): Promise<string> => (await run('runsc', ['--version'])).stdout.split('\n')[0] ?? '';
    let version: string;
    try {
      version = await versionOf();
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error;
      await updateLists(() => undefined);
      await installPackages(['runsc'], () => undefined);
      version = await versionOf();
    }
    const folder = await mkdtemp(join(tmpdir(), 'berth-runsc-'));
    const config = {
      ociVersion: '1.0.0',
      process: {
        user: { uid: 65_534, gid: 65_534 },
        args: ['/bin/sh', '-c', command],
        env: ['PATH=/usr/bin:/bin'],
        cwd: '/',
      },
      root: { path: '/', readonly: true },
      mounts: [{ destination: '/proc', type: 'proc', source: 'proc' }],
      linux: { namespaces: ['pid', 'network', 'ipc', 'uts', 'mount'].map((type) => ({ type })) },
    };
    await writeFile(join(folder, 'config.json'), JSON.stringify(config));
    return new Runsc(version, folder);
  }

  /** Milliseconds from the start of `runsc run` to its exit. */
  async run(): Promise<number> {
    this.#runs += 1;
    const startedAt = performance.now();
    const flags = ['--ignore-cgroups', '--network=none', '--root', join(this.#folder, 'state')];
    const { stdout } = await run(
      'runsc',
      [...flags, 'run', '--bundle', this.#folder, `berth-bench-${process.pid}-${this.#runs}`],
      {
        timeout: DEADLINE_MS,
        killSignal: 'SIGKILL',
      },
    );
    if (stdout === '') throw new Error('runsc ran the command without output');
    return performance.now() - startedAt;
  }

  async close(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}
