// A sandbox with as many processes as it may have, which write their outputs at full speed: each
// log is full, and some are followed.
import { Berth, type Sandbox, type SandboxProcess } from '../../sdk/src/index.ts';
import { PROCESS_LIMITS } from '@berth/protocol/guest-limits.ts';
import type { BenchWorld } from '../world/installation.ts';

const FOLLOWED = 16;
const STARTS_AT_ONCE = 8;

export class Writers {
  readonly #sandbox: Sandbox;
  #processes: SandboxProcess[] = [];
  #stop = new AbortController();
  #followers: Promise<unknown> = Promise.resolve();

  private constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox;
  }

  static async create({ client, url }: BenchWorld): Promise<Writers> {
    const id = await client.createAwake({ name: 'busy', machineSize: 'medium' });
    return new Writers(await new Berth({ url, apiKey: client.token }).sandboxes.get(id));
  }

  async start(): Promise<void> {
    const wanted = Array.from({ length: PROCESS_LIMITS.live }, (_, at) => at);
    const starter = async (): Promise<void> => {
      while (wanted.pop() !== undefined) this.#processes.push(await this.#sandbox.spawn('yes'));
    };
    await Promise.all(Array.from({ length: STARTS_AT_ONCE }, starter));
    const { signal } = (this.#stop = new AbortController());
    this.#followers = Promise.all(this.#processes.slice(0, FOLLOWED).map((process) => follow(process, signal)));
    // Reported by `stop`.
    this.#followers.catch(() => undefined);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#followers;
    await this.#sandbox.exec('pkill -KILL -x yes; echo stopped');
    for (const process of this.#processes.splice(0)) await process.remove();
  }
}

async function follow(process: SandboxProcess, signal: AbortSignal): Promise<void> {
  try {
    for await (const _ of process.output({ signal }));
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
