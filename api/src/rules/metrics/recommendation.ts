// Which allocation fits what a sandbox used lately. Pure: a window of samples in, an allocation and
// the reason out. Knows neither plans nor hosts; it is given the bounds that follow from them.
//
// Each amount (vCPU, memory, disk) is judged by itself, on the steps that the machine sizes have of
// it. It goes up when it was nearly full in the short window, and down to a step that would have
// been half empty in every window. What lies between is the hysteresis: a step that was left
// because it was nearly full (85 %) cannot be half empty (50 %) at the same use, so no size is
// taken back that the same load had asked for, and none is asked for again.
import { MACHINE_SIZES, type Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';

/** What a sandbox used at one look. */
export interface UsageSample {
  /** Milliseconds since 1970. */
  at: number;
  /** The allocation of that time; the shares below are of it. */
  allocation: Allocation;
  /**
   * 0 to 1; of the processors it is the mean since the look before, null where there was none to
   * count from.
   */
  cpuUsed: number | null;
  memoryUsed: number;
  diskUsed: number;
}

export interface RecommendationInput {
  now: number;
  /** The allocation in force. */
  current: Allocation;
  /**
   * The largest allocation that may be asked for. What the sandbox has already is not taken away
   * for being above it.
   */
  largest: Allocation;
  /** In any order; those older than the long window do not count. */
  samples: readonly UsageSample[];
}

export interface Recommendation {
  allocation: Allocation;
  /** For people: one sentence, or more, that names the windows and figures. */
  reason: string;
}

/** Above this share of the present step, more is recommended. */
export const NEARLY_FULL = 0.85;
/** Up to this share of a smaller step, in every window, that step is recommended. */
export const HALF_EMPTY = 0.5;

interface Window {
  name: string;
  lengthMs: number;
  /** Fewer samples than this say nothing. */
  minSamples: number;
}

const MINUTE_MS = 60_000;
const SHORT: Window = { name: '10 minutes', lengthMs: 10 * MINUTE_MS, minSamples: 3 };
const MIDDLE: Window = { name: '1 hour', lengthMs: 60 * MINUTE_MS, minSamples: 6 };
const LONG: Window = { name: '24 hours', lengthMs: 24 * 60 * MINUTE_MS, minSamples: 24 };
export const WINDOWS: readonly Window[] = [SHORT, MIDDLE, LONG];
export const SHORTEST_WINDOW_MS = SHORT.lengthMs;
export const LONGEST_WINDOW_MS = LONG.lengthMs;
/**
 * A window is quiet only when its oldest sample lies in its first half: a burst of samples does not
 * make a day.
 */
const COVERED_SHARE = 0.5;

interface Judgement {
  amount: number;
  reason: string;
}

/**
 * What the sandbox should have. The same input gives the same answer; more use never gives less.
 */
export function recommendAllocation(input: RecommendationInput): Recommendation {
  const { current, largest } = input;
  const vcpu = judge(input, {
    what: 'CPU',
    unit: 'vCPU',
    current: current.vcpu,
    largest: largest.vcpu,
    steps: stepsOf('vcpu'),
    used: ({ cpuUsed, allocation }) => (cpuUsed === null ? undefined : cpuUsed * allocation.vcpu),
    // One busy look is a compiler run; half of the looks are a machine that is too small.
    busy: (used) => quantile(used, 0.5),
    looksToGrow: SHORT.minSamples,
    // A backup or an install now and then does not need the machine to be big all day.
    quiet: (used) => quantile(used, 0.9),
    shrinks: true,
  });
  const memoryGb = judge(input, {
    what: 'memory',
    unit: 'GB',
    current: current.memoryGb,
    largest: largest.memoryGb,
    steps: stepsOf('memoryGb'),
    used: ({ memoryUsed, allocation }) => memoryUsed * allocation.memoryGb,
    // Memory that runs out once ends a process: the highest look counts, both ways, and one is
    // enough.
    busy: (used) => quantile(used, 1),
    looksToGrow: 1,
    quiet: (used) => quantile(used, 1),
    shrinks: true,
  });
  const diskGb = judge(input, {
    what: 'disk',
    unit: 'GB',
    current: current.diskGb,
    largest: largest.diskGb,
    steps: stepsOf('diskGb'),
    used: ({ diskUsed, allocation }) => diskUsed * allocation.diskGb,
    busy: (used) => quantile(used, 1),
    looksToGrow: 1,
    quiet: (used) => quantile(used, 1),
    shrinks: false,
  });
  return {
    allocation: { vcpu: vcpu.amount, memoryGb: memoryGb.amount, diskGb: diskGb.amount },
    reason: [vcpu, memoryGb, diskGb].map(({ reason }) => reason).join(' '),
  };
}

interface Resource {
  what: string;
  unit: string;
  current: number;
  largest: number;
  /** Ascending. */
  steps: readonly number[];
  /** What a sample says was in use, in the resource's unit; undefined when it does not say. */
  used: (sample: UsageSample) => number | undefined;
  busy: (used: readonly number[]) => number;
  /** Looks in the short window that it takes to go up. */
  looksToGrow: number;
  quiet: (used: readonly number[]) => number;
  shrinks: boolean;
}

function judge(input: RecommendationInput, resource: Resource): Judgement {
  const { what, unit, current } = resource;
  const stays = (because: string): Judgement => ({
    amount: current,
    reason: `${what} stays at ${current} ${unit}: ${because}.`,
  });

  const lately = looksIn(SHORT, input, resource);
  if (lately.used.length >= resource.looksToGrow) {
    const demand = resource.busy(lately.used);
    if (demand > NEARLY_FULL * current) {
      const share = describeShare(demand, current);
      const larger = resource.steps.filter((step) => step > current && step <= resource.largest);
      const amount = larger.find((step) => demand <= NEARLY_FULL * step) ?? larger.at(-1);
      if (amount === undefined)
        return stays(`${share} was in use over the last ${SHORT.name}, but no larger step may be asked for`);
      return {
        amount,
        reason: `${what} goes from ${current} to ${amount} ${unit}: ${share} was in use over the last ${SHORT.name}.`,
      };
    }
  }

  const smaller = resource.steps.filter((step) => step < current);
  if (!resource.shrinks || smaller.length === 0)
    return stays(resource.shrinks ? 'there is no smaller step' : 'there is room, and a disk never shrinks');

  let highest = 0;
  for (const window of WINDOWS) {
    const looks = looksIn(window, input, resource);
    if (looks.used.length < window.minSamples) {
      return stays(
        `${looks.used.length} of the ${window.minSamples} samples that it takes to judge ${window.name} are there`,
      );
    }

    if (looks.coveredMs < COVERED_SHARE * window.lengthMs)
      return stays(`the samples cover too little of ${window.name}`);
    highest = Math.max(highest, resource.quiet(looks.used));
  }
  const amount = smaller.find((step) => highest <= HALF_EMPTY * step);
  if (amount === undefined) return stays('a smaller step would be too tight');
  return {
    amount,
    reason: `${what} goes from ${current} to ${amount} ${unit}: no more than ${describeShare(highest, current)} was in use over any of ${WINDOWS.map(({ name }) => name).join(', ')}.`,
  };
}

/**
 * What the window's samples say of the resource, ascending, and how far back the oldest of them is.
 */
function looksIn(
  window: Window,
  { now, samples }: RecommendationInput,
  resource: Resource,
): { used: number[]; coveredMs: number } {
  const used: number[] = [];
  let coveredMs = 0;
  for (const sample of samples) {
    const agoMs = now - sample.at;
    const amount = resource.used(sample);
    if (amount === undefined || agoMs < 0 || agoMs > window.lengthMs) continue;
    used.push(amount);
    coveredMs = Math.max(coveredMs, agoMs);
  }
  return { used: used.toSorted((one, other) => one - other), coveredMs };
}

/** The nearest-rank quantile of numbers in ascending order; 0 of none. */
function quantile(ascending: readonly number[], share: number): number {
  return ascending[Math.max(0, Math.ceil(share * ascending.length) - 1)] ?? 0;
}

function describeShare(demand: number, current: number): string {
  return `${Math.round((100 * demand) / current)} % of it`;
}

function stepsOf(amount: keyof Allocation): number[] {
  return [...new Set(Object.values(MACHINE_SIZES).map((size) => size[amount]))].toSorted((one, other) => one - other);
}
