// The API as a process of its own, with the production's program and limits, and its memory.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { API_ALLOCATOR, API_NODE_FLAGS } from '@berth/machine/roles/control-plane/api-memory.ts';

const PROGRAM = fileURLToPath(new URL('../../api/src/main.ts', import.meta.url));

export class ApiProcess {
  readonly port: number;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.port = port;
  }

  /** Resolves when it serves. */
  static async start(environment: Record<string, string>): Promise<ApiProcess> {
    const child = spawn(process.execPath, [...API_NODE_FLAGS, PROGRAM], {
      env: { ...environment, ...API_ALLOCATOR, BERTH_PORT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const port = await new Promise<number>((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`the API exited with ${code}`)));
      createInterface({ input: child.stdout }).on('line', (line) => {
        const { msg, port: listening } = JSON.parse(line) as { msg?: string; port?: number };
        if (msg === 'ready' && listening !== undefined) resolve(listening);
      });
    });
    return new ApiProcess(child, port);
  }

  /** Memory in MiB: now, and the most since the start. */
  memory(): { nowMib: number; peakMib: number } {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, 'latin1');
    const mib = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) / 1_024;
    return { nowMib: mib('VmRSS'), peakMib: mib('VmHWM') };
  }

  async stop(): Promise<void> {
    const exited = once(this.#child, 'exit');
    if (this.#child.exitCode === null && this.#child.kill('SIGTERM')) await exited;
  }
}
