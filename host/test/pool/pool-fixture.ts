// A pool over a scripted machine and a real folder, for tests; `restart` is what a new daemon after
// `kill -9` finds.
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { PoolDirectory } from '../../src/pool/directory.ts';
import type { PoolMemory } from '../../src/pool/target.ts';
import type { TakenMachine } from '../../src/pool/hand-over.ts';
import { WarmPool, type PoolParts } from '../../src/pool/pool.ts';
import type { DriverState, VmSize } from '../../src/vm/driver.ts';
import { ScriptedDriver, ScriptedMachine } from '../vm/scripted-driver.ts';

export const SIZE = { vcpu: 1, memoryMib: 1_024, diskGib: 10 };
/** Long enough for what a pool does in a test, on a slow disk too. */
const DEADLINE_MS = 60_000;
const POLL_MS = 2;

export class PoolFixture {
  readonly root: string;
  readonly machine = new ScriptedMachine();
  memory: PoolMemory = { unpromisedMib: 100_000, spareMib: 100_000 };
  driver!: ScriptedDriver;
  pool!: WarmPool;
  readonly #parts: Partial<PoolParts>;

  private constructor(root: string, parts: Partial<PoolParts>) {
    this.root = root;
    this.#parts = parts;
  }

  /** A pool that was not started yet. */
  static async make(parts: Partial<PoolParts> = {}): Promise<PoolFixture> {
    const fixture = new PoolFixture(await mkdtemp(join(tmpdir(), 'berth-pool-')), parts);
    await fixture.restart();
    return fixture;
  }

  /**
   * A new daemon's pool over what is on disk and on the machine; the one before hears of nothing
   * any more.
   */
  async restart(): Promise<void> {
    if (this.driver !== undefined) this.driver.killed = true;

    this.driver = new ScriptedDriver(this.machine);
    this.pool = new WarmPool({
      driver: this.driver,
      directory: new PoolDirectory(join(this.root, 'pool')),
      log: pino({ level: 'silent' }),
      size: SIZE,
      deadlineMs: DEADLINE_MS,
      limits: { min: 2, max: 4 },
      pace: { atOnce: 2, quietMs: 0, exerciseAfterMs: 60_000 },
      readMemory: () => this.memory,
      ...this.#parts,
    });
    await this.pool.clear();
  }

  /** Takes a machine for a VM of this name, whose folder is made. */
  async take(
    name: string,
    saveState: (machineId: string, state: DriverState) => Promise<void> = async () => {},
    size: VmSize = SIZE,
  ): Promise<TakenMachine | null> {
    const folder = this.vmFolder(name);
    await mkdir(folder, { recursive: true });
    return this.pool.take({ size, folder, saveState, signal: AbortSignal.timeout(DEADLINE_MS) });
  }

  vmFolder(name: string): string {
    return join(this.root, 'vms', name, 'vm');
  }

  /** Ids of machines that have a folder in the pool. */
  async folders(): Promise<string[]> {
    return (await readdir(join(this.root, 'pool'))).sort();
  }

  /** Ids that machines with a process were made with. */
  running(): string[] {
    return [...this.machine.running.values()].map(({ id }) => id).sort();
  }

  async until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
    const deadline = performance.now() + DEADLINE_MS;
    while (!(await holds())) {
      if (performance.now() > deadline) {
        throw new Error(
          `${what}: not within ${DEADLINE_MS / 1_000} s; the pool is ${JSON.stringify(this.pool.state())}`,
        );
      }

      await delay(POLL_MS);
    }
  }

  async ready(count: number): Promise<void> {
    await this.until(`${count} machines wait`, () => this.pool.state().ready === count);
  }

  async remove(): Promise<void> {
    await this.pool.close();
    await this.machine.stop();
    await rm(this.root, { recursive: true });
  }
}
