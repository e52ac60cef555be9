// Recommends an allocation from recent usage. Pure: samples in, allocation and reason out. The
// bounds of plans and hosts are parameters. Each resource (vCPU, memory, disk) is judged
// separately, on the steps of the VM sizes. A resource grows when nearly full (85 %) in the short
// window. A resource shrinks to a step that would have been at most half full (50 %) in every
// window. The gap is the hysteresis: at the same load a step left for being nearly full is never
// half empty, so sizes do not oscillate.
import { MACHINE_SIZES, type Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';

/** Usage at one sample time. */
export interface UsageSample {
  /** Milliseconds since 1970. */
  at: number;
  /** The allocation at that time; the shares below refer to it. */
  allocation: Allocation;
  /** Share 0 to 1. The mean CPU share since the previous sample; null without a previous sample. */
  cpuUsed: number | null;
  memoryUsed: number;
  diskUsed: number;
}

interface RecommendationInput {
  now: number;
  /** The allocation in force. */
  current: Allocation;
  /**
   * Upper bound of the recommendation. Resources that the sandbox already has above it are kept.
   */
  largest: Allocation;
  /** In any order. Samples older than the long window are ignored. */
  samples: readonly UsageSample[];
}

interface Recommendation {
  allocation: Allocation;
  /** Sentences for people, naming windows and figures. */
  reason: string;
}

/** Usage share of the current step above which a larger step is recommended. */
export const NEARLY_FULL = 0.85;
/** Usage share of a smaller step, in every window, up to which that step is recommended. */
export const HALF_EMPTY = 0.5;

interface Window {
  name: string;
  lengthMs: number;
  /** Minimum number of samples for a judgement. */
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
 * A window counts as quiet only if its oldest sample lies in its first half: a burst of samples
 * does not cover a day.
 */
const COVERED_SHARE = 0.5;

interface Assessment {
  amount: number;
  reason: string;
}

/** Recommends an allocation. Deterministic and monotonic: more usage never yields less. */
export function recommendAllocation(input: RecommendationInput): Recommendation {
  const { current, largest } = input;
  const vcpu = assess(input, {
    what: 'CPU',
    unit: 'vCPU',
    current: current.vcpu,
    largest: largest.vcpu,
    steps: stepsOf('vcpu'),
    used: ({ cpuUsed, allocation }) => (cpuUsed === null ? undefined : cpuUsed * allocation.vcpu),
    // A single busy sample may be a compiler run; half of the samples show a VM that is too small.
    busy: (used) => quantile(used, 0.5),
    looksToGrow: SHORT.minSamples,
    // An occasional backup or install does not justify a larger VM all day.
    quiet: (used) => quantile(used, 0.9),
    shrinks: true,
  });
  const memoryGb = assess(input, {
    what: 'memory',
    unit: 'GB',
    current: current.memoryGb,
    largest: largest.memoryGb,
    steps: stepsOf('memoryGb'),
    used: ({ memoryUsed, allocation }) => memoryUsed * allocation.memoryGb,
    // Running out of memory once kills a process, so the highest sample decides in both directions.
    busy: (used) => quantile(used, 1),
    looksToGrow: 1,
    quiet: (used) => quantile(used, 1),
    shrinks: true,
  });
  const diskGb = assess(input, {
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
  /** Usage in a sample, in the resource's unit; undefined if the sample lacks it. */
  used: (sample: UsageSample) => number | undefined;
  busy: (used: readonly number[]) => number;
  /** Samples in the short window required to grow. */
  looksToGrow: number;
  quiet: (used: readonly number[]) => number;
  shrinks: boolean;
}

function assess(input: RecommendationInput, resource: Resource): Assessment {
  const { what, unit, current } = resource;
  const stays = (because: string): Assessment => ({
    amount: current,
    reason: `${what} stays at ${current} ${unit}: ${because}.`,
  });

  const lately = usageIn(SHORT, input, resource);
  if (lately.used.length >= resource.looksToGrow) {
    const demand = resource.busy(lately.used);
    if (demand > NEARLY_FULL * current) {
      const share = describeShare(demand, current);
      const larger = resource.steps.filter((step) => step > current && step <= resource.largest);
      const amount = larger.find((step) => demand <= NEARLY_FULL * step) ?? larger.at(-1);
      if (amount === undefined)
        return stays(`${share} was in use over the last ${SHORT.name}, but no larger step is allowed`);
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
    const looks = usageIn(window, input, resource);
    if (looks.used.length < window.minSamples) {
      return stays(
        `${looks.used.length} of the ${window.minSamples} samples required over ${window.name} are available`,
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
    reason:
      `${what} goes from ${current} to ${amount} ${unit}: ` +
      `no more than ${describeShare(highest, current)} ` +
      `was in use over any of ${WINDOWS.map(({ name }) => name).join(', ')}.`,
  };
}

/** Usage of the resource in the window's samples, ascending, and the age of the oldest sample. */
function usageIn(
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

/** Nearest-rank quantile of ascending numbers; 0 if there are none. */
function quantile(ascending: readonly number[], share: number): number {
  return ascending[Math.max(0, Math.ceil(share * ascending.length) - 1)] ?? 0;
}

function describeShare(demand: number, current: number): string {
  return `${Math.round((100 * demand) / current)} % of it`;
}

function stepsOf(amount: keyof Allocation): number[] {
  return [...new Set(Object.values(MACHINE_SIZES).map((size) => size[amount]))].toSorted((one, other) => one - other);
}
