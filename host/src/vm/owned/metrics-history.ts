// The host's figures of one VM in the past, in memory: a ring for each step of `VM_HISTORY`, about
// 60 KB in all. A ring takes the first reading of each step; a step without one is a gap.
import { VM_HISTORY, type VmHistory } from '@berth/protocol/calls/metrics.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import type { VmFigures } from '../driver.ts';

interface Reading extends VmFigures {
  unixMs: number;
  vcpu: number;
  /** Counters of two processes are not compared. */
  process: ProcessIdentity;
}

type Point = VmHistory['points'][number];

const FIELDS = [
  'cpuUsedPercent',
  'residentMib',
  'unsharedMib',
  'diskUsedMib',
  'networkInPerSecond',
  'networkOutPerSecond',
] as const satisfies (keyof Point)[];
const NEVER = -1;

export class MetricsHistory {
  readonly #rings = VM_HISTORY.map(({ stepSeconds, keptSeconds }) => new Ring(stepSeconds, keptSeconds / stepSeconds));
  lastUnixMs = 0;

  record(reading: Reading): void {
    this.lastUnixMs = reading.unixMs;
    for (const ring of this.#rings) ring.record(reading);
  }

  /** In the smallest step that is kept for the window, or the largest step. */
  read(windowSeconds: number, nowUnixMs: number): VmHistory {
    const ring = this.#rings[ringFor(windowSeconds)] as Ring;
    return { stepSeconds: ring.stepSeconds, points: ring.read(windowSeconds, nowUnixMs) };
  }
}

export function emptyHistory(windowSeconds: number): VmHistory {
  return { stepSeconds: VM_HISTORY[ringFor(windowSeconds)].stepSeconds, points: [] };
}

function ringFor(windowSeconds: number): 0 | 1 {
  return windowSeconds <= VM_HISTORY[0].keptSeconds ? 0 : 1;
}

class Ring {
  readonly stepSeconds: number;
  /** Number of the step in each slot, counted from 1970. */
  readonly #steps: Float64Array;
  readonly #figures: Float32Array;
  #last: { step: number; reading: Reading } | null = null;

  constructor(stepSeconds: number, length: number) {
    this.stepSeconds = stepSeconds;
    this.#steps = new Float64Array(length).fill(NEVER);
    this.#figures = new Float32Array(length * FIELDS.length);
  }

  record(reading: Reading): void {
    const step = this.#stepAt(reading.unixMs);
    const last = this.#last;
    if (step === last?.step) return;

    // The clock was set back: later points would be out of order.
    if (last !== null && step < last.step) this.#steps.fill(NEVER);
    const before = last?.step === step - 1 && last.reading.process === reading.process ? last.reading : null;
    const slot = step % this.#steps.length;
    this.#steps[slot] = step;
    this.#figures.set(figuresOf(reading, before), slot * FIELDS.length);
    this.#last = { step, reading };
  }

  read(windowSeconds: number, nowUnixMs: number): Point[] {
    const now = this.#stepAt(nowUnixMs);
    const from = Math.max(this.#stepAt(nowUnixMs - windowSeconds * 1_000), now - this.#steps.length) + 1;
    const points: Point[] = [];
    let inGap = true;
    for (let step = from; step <= now; step += 1) {
      const isKept = this.#steps[step % this.#steps.length] === step;
      // The reading of the last two steps may be still to come.
      if (!isKept && (inGap || step >= now - 1)) continue;
      points.push(this.#pointOf(step, isKept));
      inGap = !isKept;
    }
    return points;
  }

  #stepAt(unixMs: number): number {
    return Math.floor(unixMs / (this.stepSeconds * 1_000));
  }

  #pointOf(step: number, isKept: boolean): Point {
    const from = (step % this.#steps.length) * FIELDS.length;
    const at = (index: number): number | null => {
      const figure = this.#figures[from + index];
      return !isKept || figure === undefined || Number.isNaN(figure) ? null : Math.round(figure * 100) / 100;
    };
    const figures = Object.fromEntries(FIELDS.map((field, index) => [field, at(index)]));
    return { atUnixMs: step * this.stepSeconds * 1_000, ...figures } as Point;
  }
}

/** In the order of `FIELDS`; NaN is unknown. */
function figuresOf(reading: Reading, before: Reading | null): number[] {
  const rateOf = (counter: 'cpuMs' | 'networkInBytes' | 'networkOutBytes'): number => {
    if (before === null || reading[counter] < before[counter]) return NaN;
    return (reading[counter] - before[counter]) / ((reading.unixMs - before.unixMs) / 1_000);
  };
  const { residentMib, unsharedMib, diskUsedMib, vcpu } = reading;
  return [
    // Milliseconds a second, of all vCPUs. The emulator's own time comes on top.
    Math.min(100, rateOf('cpuMs') / 10 / vcpu),
    residentMib,
    unsharedMib,
    diskUsedMib,
    rateOf('networkInBytes'),
    rateOf('networkOutBytes'),
  ];
}
