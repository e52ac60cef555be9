// Order and concurrency of test files: more than two while cores are idle, because many files wait
// for timers, processes and disks.
import { availableParallelism, cpus, freemem } from 'node:os';
import type { Cost } from './costs.ts';

/** Minimum of concurrent files at any load. */
const LEAST_AT_ONCE = 2;
const MOST_AT_ONCE = 6;
/** Idle share of all cores required to start another file. */
const IDLE_SHARE = 0.25;
/** Free memory required to start another file: it may start databases and VMs. */
const FREE_BYTES = 3 * 2 ** 30;
const SAMPLE_MS = 1_000;
/** Assumed duration of an unmeasured file. */
const UNKNOWN_SECONDS = 30;
/** Shortest and longest timeout of a file, and that of an unmeasured one. */
const TIMEOUT_MS = { least: 10 * 60_000, most: 30 * 60_000, unknown: 20 * 60_000 };
/** Slowdown of a file, against its measured cost, that a loaded machine explains. */
const SLOWDOWN = 10;

/** Test files that run in one process. */
export type Group = readonly [string, ...string[]];

interface Load {
  running: number;
  /** Recent idle share of all cores, 0 to 1. */
  idleShare: number;
  freeBytes: number;
}

export function longestFirst(groups: readonly Group[], costs: ReadonlyMap<string, Cost>): Group[] {
  return groups.toSorted((a, b) => secondsOf(b, costs) - secondsOf(a, costs));
}

/** Expected duration of a run on idle cores, in whole minutes. */
export function expectedMinutes(files: readonly string[], costs: ReadonlyMap<string, Cost>): number {
  return Math.ceil(secondsOf(files, costs) / availableParallelism() / 60);
}

const secondsOf = (files: readonly string[], costs: ReadonlyMap<string, Cost>): number =>
  files.reduce((sum, file) => sum + (costs.get(file)?.seconds ?? UNKNOWN_SECONDS), 0);

/** Timeout of a file, and of each test in it: a hanging test must not outlast the run. */
export function timeoutMs(cost: Cost | undefined): number {
  if (cost === undefined) return TIMEOUT_MS.unknown;
  return Math.min(TIMEOUT_MS.most, Math.max(TIMEOUT_MS.least, cost.seconds * 1_000 * SLOWDOWN));
}

export function hasRoom({ running, idleShare, freeBytes }: Load): boolean {
  if (running < LEAST_AT_ONCE) return true;
  return running < MOST_AT_ONCE && idleShare >= IDLE_SHARE && freeBytes >= FREE_BYTES;
}

/** Starts the groups in order. Rejects if a run rejects. */
export async function runOnIdleCores(
  groups: readonly Group[],
  runGroup: (files: Group) => Promise<void>,
): Promise<void> {
  const waiting = [...groups];
  const running = new Set<Promise<void>>();
  let sample = cpuTimes();
  let idleShare = 0;
  const ticks = setInterval(() => {
    const next = cpuTimes();
    idleShare = (next.idle - sample.idle) / Math.max(1, next.total - sample.total);
    sample = next;
    startFitting();
  }, SAMPLE_MS);
  const done = Promise.withResolvers<void>();
  const startFitting = (): void => {
    while (hasRoom({ running: running.size, idleShare, freeBytes: freemem() })) {
      const group = waiting.shift();
      if (group === undefined) break;
      // At most one more process per sample.
      idleShare = 0;
      const run = runGroup(group).finally(() => running.delete(run));
      running.add(run);
      run.then(startFitting, done.reject);
    }
    if (running.size === 0) done.resolve();
  };
  try {
    startFitting();
    await done.promise;
  } finally {
    clearInterval(ticks);
  }
}

function cpuTimes(): { idle: number; total: number } {
  const times = cpus().map((core) => core.times);
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
  return {
    idle: sum(times.map(({ idle }) => idle)),
    total: sum(times.flatMap((core) => Object.values(core))),
  };
}
