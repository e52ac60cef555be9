// Starts the load generator's process and sends it orders, one at a time.
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { LoadOrder, LoadReport } from './load.ts';

const PROGRAM = fileURLToPath(new URL('load.ts', import.meta.url));

export class Load {
  readonly #child: ChildProcess = fork(PROGRAM, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });

  /** Responses per second and all latencies. Rejects when a response is not 200. */
  async run(order: LoadOrder): Promise<{ perSecond: number; latenciesMs: number[] }> {
    const answered = once(this.#child, 'message');
    this.#child.send(order);
    const [report] = (await answered) as [LoadReport];
    if ('error' in report) throw new Error(`${order.path}: ${report.error}`);
    return { perSecond: (report.answers * 1_000) / report.milliseconds, latenciesMs: report.latenciesMs };
  }

  async close(): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#child.disconnect();
    await exited;
  }
}
