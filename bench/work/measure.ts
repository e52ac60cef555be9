// The operations of a sandbox, one after another on an idle installation: CPU time outside the
// guest, wall time, and the time until the vCPU runs.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { instancePaths } from '@berth/machine/supervisor/instance.ts';
import { timeRequests } from '../world/http-load.ts';
import { startPreviewApp } from '../data/previews.ts';
import type { BenchWorld } from '../world/installation.ts';
import { figureOf } from '../world/statistics.ts';
import { PARTS, type Accounts, type PartTimes } from './accounts.ts';

const COMMAND = 'uname -a';
/** An operation counts until this long after its response: slots are released in the background. */
const AFTERMATH_MS = 700;
/** The host daemon makes slots after two quiet seconds. */
const QUIET_MS = 3_500;
const PREVIEW_CONNECTIONS = 8;
const LOG_DEADLINE_MS = 180_000;
const LOG_POLL_MS = 20;

/** Measurements of one operation. */
interface Operation {
  times: PartTimes[];
  /** Time in which CPU time was counted. */
  countedMs: number[];
  wallMs: number[];
  /** From the request until QEMU resumed its vCPUs. */
  untilRunsMs: number[];
}

export type Operations = Record<string, Operation>;

interface Measure {
  /** Repetitions within `act`. */
  repeats?: number;
  /** Wait for work after the response. */
  aftermath?: boolean;
  /** Message of the host daemon when the vCPU runs. */
  runs?: string;
}

class Meter {
  readonly #operations: Operations = {};
  readonly #accounts: Accounts;
  readonly #logFile: string;
  /** CPU milliseconds per millisecond of the installation while idle. */
  #idle: PartTimes[] = [];

  constructor(accounts: Accounts, { dataFolder }: BenchWorld) {
    this.#accounts = accounts;
    this.#logFile = join(instancePaths(dataFolder).log, 'host.log');
  }

  /** Forgets earlier measurements. */
  begin(): void {
    for (const name of Object.keys(this.#operations)) delete this.#operations[name];
    this.#idle = [];
  }

  /** Measures the rate of background work. */
  async measureIdle(): Promise<void> {
    const startedAt = performance.now();
    const { times } = await this.#accounts.during(() => delay(QUIET_MS));
    this.#idle.push(scaled(times, 1 / (performance.now() - startedAt)));
  }

  /** Adds the operation to its measurements. */
  async measure<T>(name: string, act: () => Promise<T>, measure: Measure = {}): Promise<T> {
    const { repeats = 1, aftermath = false, runs } = measure;
    const startedUnixMs = Date.now();
    const startedAt = performance.now();
    let wallMs = 0;
    const { times, result } = await this.#accounts.during(async () => {
      const done = await act();
      wallMs = performance.now() - startedAt;
      if (aftermath) await delay(AFTERMATH_MS);
      return done;
    });
    const operation = (this.#operations[name] ??= { times: [], countedMs: [], wallMs: [], untilRunsMs: [] });
    operation.times.push(scaled(times, 1 / repeats));
    operation.countedMs.push((performance.now() - startedAt) / repeats);
    operation.wallMs.push(wallMs / repeats);
    if (runs !== undefined) operation.untilRunsMs.push((await this.logged(runs, startedUnixMs)) - startedUnixMs);
    return result;
  }

  /** The operations without background work, and that for a second. */
  results(): Operations {
    const idle = Object.fromEntries(
      PARTS.map((part) => [part, figureOf(this.#idle.map((rate) => rate[part])).median]),
    ) as unknown as PartTimes;
    const operations = Object.entries(this.#operations).map(([name, operation]) => {
      const times = operation.times.map((all, at) => {
        const background = scaled(idle, operation.countedMs[at] ?? 0);
        return combined(all, background, (one, other) => one - other);
      });
      return [name, { ...operation, times }] as const;
    });
    const second = this.#idle.map((rate) => scaled(rate, 1_000));
    return {
      'idle second': { times: second, countedMs: [], wallMs: [1_000], untilRunsMs: [] },
      ...Object.fromEntries(operations),
    };
  }

  /** Time of the first such message since then. */
  async logged(message: string, sinceUnixMs: number): Promise<number> {
    const deadline = performance.now() + LOG_DEADLINE_MS;
    while (performance.now() < deadline) {
      for (const line of (await readFile(this.#logFile, 'utf8')).split('\n')) {
        const time = line.includes(`"${message}"`) ? Number(/"time":(\d+)/.exec(line)?.[1]) : 0;
        if (time >= sinceUnixMs) return time;
      }
      await delay(LOG_POLL_MS);
    }
    throw new Error(`the host daemon did not log '${message}'`);
  }
}

/** Everything but creates from the pool, on an installation without one. */
export async function measureOperations(
  world: BenchWorld,
  accounts: Accounts,
  { rounds, execs, requests }: { rounds: number; execs: number; requests: number },
): Promise<Operations> {
  const { client, progress } = world;
  const meter = new Meter(accounts, world);
  await progress.step(`${rounds} rounds of all operations, without a pool`, async (report) => {
    const steady = await client.createAwake();
    const { preview } = await startPreviewApp(world, steady);
    // The first round is unmeasured: code not yet compiled.
    for (let round = -1; round < rounds; round += 1) {
      report(`${Math.max(0, round + 1)} of ${rounds}`);
      if (round === 0) meter.begin();
      const id = await meter.measure('create', () => client.createAwake(), {
        aftermath: true,
        runs: 'restoring the template: done',
      });
      await client.exec(id, COMMAND);
      await meter.measure('sleep', () => client.sleep(id), { aftermath: true });
      await meter.measure('wake', () => client.wake(id), { aftermath: true, runs: 'waking the VM: done' });
      await meter.measure('destroy', () => client.destroy(id), { aftermath: true });
      await meter.measure('slots afterwards', () => delay(QUIET_MS));
      await meter.measureIdle();
      const run = async (): Promise<void> => {
        for (let count = 0; count < execs; count += 1) await client.exec(steady, COMMAND);
      };
      await meter.measure('exec', run, { repeats: execs });
      await meter.measure('preview request', () => timeRequests(preview, '/small', requests, PREVIEW_CONNECTIONS), {
        repeats: requests,
      });
    }
  });
  return meter.results();
}

/** Creates from a pool of one VM, and the work to fill it again. */
export async function measurePool(
  world: BenchWorld,
  accounts: Accounts,
  { rounds }: { rounds: number },
): Promise<Operations> {
  const { client, progress, poolHas } = world;
  const meter = new Meter(accounts, world);
  await progress.step(`${rounds} creates from the pool`, async (report) => {
    for (let round = -1; round < rounds; round += 1) {
      report(`${Math.max(0, round + 1)} of ${rounds}`);
      await poolHas(1);
      await delay(QUIET_MS);
      if (round === 0) meter.begin();
      const id = await meter.measure('create from the pool', () => client.createAwake());
      const claimedUnixMs = Date.now();
      await meter.measure('pool refill', () => meter.logged('a VM is ready in the pool', claimedUnixMs), {
        aftermath: true,
      });
      await client.destroy(id);
      await delay(QUIET_MS);
      await meter.measureIdle();
    }
  });
  return meter.results();
}

/** Median sum of all parts. */
export function outsideGuest({ times }: Operation): ReturnType<typeof figureOf> {
  return figureOf(times.map((parts) => PARTS.reduce((sum, part) => sum + parts[part], 0)));
}

function combined(one: PartTimes, other: PartTimes, join: (a: number, b: number) => number): PartTimes {
  return Object.fromEntries(PARTS.map((part) => [part, join(one[part], other[part])])) as unknown as PartTimes;
}

function scaled(times: PartTimes, factor: number): PartTimes {
  return combined(times, times, (time) => time * factor);
}
