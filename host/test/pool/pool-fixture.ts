// A pool over a scripted driver and a real folder; `restart` simulates `kill -9`. For tests.
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { DIRECT_GUESTS } from '../../src/guest/client.ts';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { PoolDirectory } from '../../src/pool/directory.ts';
import type { PoolMemory } from '../../src/pool/target.ts';
import type { TakenVm } from '../../src/pool/hand-over.ts';
import { WarmPool, type PoolParts } from '../../src/pool/pool.ts';
import type { DriverState, VmSize } from '../../src/vm/driver.ts';
import { ScriptedDriver, ScriptedHost } from '../vm/scripted-driver.ts';

export const SIZE = { vcpu: 1, memoryMib: 1_024, diskGib: 10 };
/** Long enough for any step of a pool in a test, on a slow disk too. */
const DEADLINE_MS = 240_000;
const POLL_MS = 2;

export class PoolFixture {
  readonly root: string;
  readonly machine = new ScriptedHost();
  memory: PoolMemory = { unpromisedMib: 100_000, spareMib: 100_000 };
  driver!: ScriptedDriver;
  pool!: WarmPool;
  readonly #parts: Partial<PoolParts>;

  private constructor(root: string, parts: Partial<PoolParts>) {
    this.root = root;
    this.#parts = parts;
  }

  /** Makes a pool without starting it. */
  static async make(parts: Partial<PoolParts> = {}): Promise<PoolFixture> {
    const fixture = new PoolFixture(await mkdtemp(join(tmpdir(), 'berth-pool-')), parts);
    await fixture.restart();
    return fixture;
  }

  /** Replaces the pool by a new daemon's, over the same disk and VMs; silences the old one. */
  async restart(): Promise<void> {
    if (this.driver !== undefined) this.driver.killed = true;

    this.driver = new ScriptedDriver(this.machine);
    this.pool = new WarmPool({
      driver: this.driver,
      directory: new PoolDirectory(join(this.root, 'pool')),
      guests: DIRECT_GUESTS,
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

  /** Takes a VM for a VM id, and creates its folder. */
  async take(
    name: string,
    saveState: (machineId: string, state: DriverState) => Promise<void> = async () => {},
    size: VmSize = SIZE,
  ): Promise<TakenVm | null> {
    const folder = this.vmFolder(name);
    await mkdir(folder, { recursive: true });
    return this.pool.take({ size, folder, saveState, signal: AbortSignal.timeout(DEADLINE_MS) });
  }

  vmFolder(name: string): string {
    return join(this.root, 'vms', name, 'vm');
  }

  /** Ids of VMs with a folder in the pool. */
  async folders(): Promise<string[]> {
    return (await readdir(join(this.root, 'pool'))).sort();
  }

  /** Pool ids of the VMs with a process. */
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
