// Recommended sizes from samples: a table of every branch, and general properties.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MACHINE_SIZES, type Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import fc from 'fast-check';
import {
  HALF_EMPTY,
  NEARLY_FULL,
  recommendAllocation,
  WINDOWS,
  type UsageSample,
} from '../../../src/rules/metrics/recommendation.ts';

const NOW = Date.parse('2026-01-31T12:00:00Z');
const MINUTE_MS = 60_000;
const DAY_MINUTES = 24 * 60;
const { small, medium, large, xlarge } = MACHINE_SIZES;
const AMOUNTS = ['vcpu', 'memoryGb', 'diskGb'] as const;

/** Demand in absolute amounts; a VM provides at most its size. */
interface Load {
  vcpu: number | null;
  memoryGb: number;
  diskGb: number;
}

const QUIET: Load = { vcpu: 0.02, memoryGb: 0.2, diskGb: 2 };

function sampleOf(load: Load, on: Allocation, minutesAgo: number): UsageSample {
  return {
    at: NOW - minutesAgo * MINUTE_MS,
    allocation: on,
    cpuUsed: load.vcpu === null ? null : Math.min(1, load.vcpu / on.vcpu),
    memoryUsed: Math.min(1, load.memoryGb / on.memoryGb),
    diskUsed: Math.min(1, load.diskGb / on.diskGb),
  };
}

/** Samples every `everyMinutes`, back from now. */
function samples(load: Load, on: Allocation, minutes: number, everyMinutes = 2): UsageSample[] {
  return Array.from({ length: Math.floor(minutes / everyMinutes) + 1 }, (_, index) =>
    sampleOf(load, on, index * everyMinutes),
  );
}

const recommend = (current: Allocation, given: UsageSample[], largest: Allocation = xlarge) =>
  recommendAllocation({ now: NOW, current, largest, samples: given });

interface Case {
  what: string;
  current: Allocation;
  largest?: Allocation;
  given: UsageSample[];
  expected: Partial<Allocation>;
  says: RegExp;
}

const CASES: Case[] = [
  {
    what: 'no samples at all: it stays',
    current: medium,
    given: [],
    expected: {},
    says: /CPU stays at 2 vCPU: 0 of the 3 samples/,
  },
  {
    what: 'processors nearly full over the short window: the next step of vCPUs alone',
    current: small,
    given: samples({ ...QUIET, vcpu: 0.95 }, small, 10),
    expected: { vcpu: 2 },
    says: /CPU goes from 1 to 2 vCPU: 95 % of it was in use over the last 10 minutes/,
  },
  {
    what: 'processors busy in two looks only: too few to grow',
    current: small,
    given: samples({ ...QUIET, vcpu: 1 }, small, 2),
    expected: {},
    says: /CPU stays at 1 vCPU/,
  },
  {
    what: 'one busy look among three: a burst, not a need',
    current: small,
    given: [sampleOf({ ...QUIET, vcpu: 1 }, small, 0), sampleOf(QUIET, small, 2), sampleOf(QUIET, small, 4)],
    expected: {},
    says: /CPU stays at 1 vCPU/,
  },
  {
    what: 'processors that were busy before the short window: past',
    current: small,
    given: [
      ...samples({ ...QUIET, vcpu: 1 }, small, 60).filter(({ at }) => at < NOW - 11 * MINUTE_MS),
      ...samples(QUIET, small, 10),
    ],
    expected: {},
    says: /CPU stays at 1 vCPU: there is no smaller step/,
  },
  {
    what: 'the share of the processors is not known: no verdict on them',
    current: medium,
    given: samples({ ...QUIET, vcpu: null }, medium, DAY_MINUTES),
    expected: { memoryGb: 1 },
    says: /CPU stays at 2 vCPU: 0 of the 3 samples/,
  },
  {
    what: 'memory nearly full in one look: up at once',
    current: small,
    given: [sampleOf({ ...QUIET, memoryGb: 0.9 }, small, 0)],
    expected: { memoryGb: 4 },
    says: /memory goes from 1 to 4 GB: 90 % of it/,
  },
  {
    what: 'memory far beyond: only as many steps as it takes',
    current: small,
    given: [sampleOf({ ...QUIET, memoryGb: 7 }, large, 5)],
    expected: { memoryGb: 16 },
    says: /memory goes from 1 to 16 GB: 700 % of it/,
  },
  {
    what: 'disk nearly full: the next step',
    current: small,
    given: [sampleOf({ ...QUIET, diskGb: 9.5 }, small, 1)],
    expected: { diskGb: 20 },
    says: /disk goes from 10 to 20 GB: 95 % of it/,
  },
  {
    what: 'busy at the largest size: it stays, and says so',
    current: xlarge,
    given: samples({ vcpu: 8, memoryGb: 16, diskGb: 80 }, xlarge, 10),
    expected: {},
    says: /CPU stays at 8 vCPU: 100 % of it was in use over the last 10 minutes, but no larger step is allowed/,
  },
  {
    what: 'busy with a bound: the largest step within it, though it will be nearly full too',
    current: small,
    largest: { vcpu: 6, memoryGb: 5, diskGb: 15 },
    given: samples({ vcpu: 8, memoryGb: 12, diskGb: 60 }, xlarge, 10),
    expected: { vcpu: 4, memoryGb: 4 },
    says: /disk stays at 10 GB: 600 % of it was in use over the last 10 minutes, but no larger step is allowed/,
  },
  {
    what: 'above its bound already and quiet: not taken away for that',
    current: large,
    largest: small,
    given: samples({ vcpu: 2.2, memoryGb: 5, diskGb: 5 }, large, DAY_MINUTES),
    expected: {},
    says: /CPU stays at 4 vCPU: a smaller step would be too tight/,
  },
  {
    what: 'quiet on every window: down to the step that would have been half empty; the disk stays',
    current: xlarge,
    given: samples({ vcpu: 0.9, memoryGb: 1.5, diskGb: 1 }, xlarge, DAY_MINUTES),
    expected: { vcpu: 2, memoryGb: 4 },
    says: /disk stays at 80 GB: there is room, and a disk never shrinks/,
  },
  {
    what: 'quiet for an hour after a busy morning: the long window is not quiet',
    current: large,
    given: [
      ...samples(QUIET, large, 90),
      ...samples({ vcpu: 3, memoryGb: 5, diskGb: 2 }, large, DAY_MINUTES).slice(46),
    ],
    expected: {},
    says: /CPU stays at 4 vCPU: a smaller step would be too tight\. memory stays at 8 GB: a smaller step would be too tight/,
  },
  {
    what: 'a rare burst in a quiet day: its processors are no need, its memory is',
    current: medium,
    given: [sampleOf({ vcpu: 2, memoryGb: 3, diskGb: 2 }, medium, 301), ...samples(QUIET, medium, DAY_MINUTES)],
    expected: { vcpu: 1 },
    says: /memory stays at 4 GB: a smaller step would be too tight/,
  },
  {
    what: 'processors at work in every fifth look of the day: that is no rare burst',
    current: medium,
    given: samples(QUIET, medium, DAY_MINUTES).map((sample, index) =>
      index % 5 === 4 ? { ...sample, cpuUsed: 0.8 } : sample,
    ),
    expected: { memoryGb: 1 },
    says: /CPU stays at 2 vCPU: a smaller step would be too tight/,
  },
  {
    what: 'quiet, but too few samples of the short window',
    current: medium,
    given: samples(QUIET, medium, DAY_MINUTES, 6),
    expected: {},
    says: /2 of the 3 samples required over 10 minutes/,
  },
  {
    what: 'quiet, but too few samples of the middle window',
    current: medium,
    given: samples(QUIET, medium, 8),
    expected: {},
    says: /5 of the 6 samples required over 1 hour/,
  },
  {
    what: 'quiet, but too few samples of the long window',
    current: medium,
    given: samples(QUIET, medium, 40),
    expected: {},
    says: /21 of the 24 samples required over 24 hours/,
  },
  {
    what: 'quiet, with many samples of a short time: they are no day',
    current: medium,
    given: samples(QUIET, medium, 60, 0.5),
    expected: {},
    says: /the samples cover too little of 24 hours/,
  },
  {
    what: 'an allocation between the steps: up and down to steps',
    current: { vcpu: 3, memoryGb: 6, diskGb: 30 },
    given: samples({ vcpu: 2.9, memoryGb: 1.9, diskGb: 29 }, { vcpu: 3, memoryGb: 6, diskGb: 30 }, DAY_MINUTES),
    expected: { vcpu: 4, memoryGb: 4, diskGb: 40 },
    says: /CPU goes from 3 to 4 vCPU.*memory goes from 6 to 4 GB.*disk goes from 30 to 40 GB/,
  },
  {
    what: 'samples of another size count by what was used, not by the share',
    current: large,
    given: samples({ vcpu: 0.9, memoryGb: 0.9, diskGb: 2 }, small, 10),
    expected: {},
    says: /CPU stays at 4 vCPU: the samples cover too little of 1 hour/,
  },
];

for (const { what, current, largest, given, expected, says } of CASES) {
  test(what, () => {
    const { allocation, reason } = recommend(current, given, largest);
    assert.deepEqual(allocation, { ...current, ...expected });
    assert.match(reason, says);
  });
}

const allocations = fc.record({
  vcpu: fc.integer({ min: 1, max: 16 }),
  memoryGb: fc.integer({ min: 1, max: 32 }),
  diskGb: fc.integer({ min: 1, max: 160 }),
});
const share = fc.double({ min: 0, max: 1, noNaN: true });
const usages: fc.Arbitrary<UsageSample[]> = fc.array(
  fc.record({
    at: fc.integer({ min: NOW - 25 * 60 * MINUTE_MS, max: NOW + MINUTE_MS }),
    allocation: allocations,
    cpuUsed: fc.option(share),
    memoryUsed: share,
    diskUsed: share,
  }),
  { maxLength: 60 },
);
/** A day at one load, so that every window matters. */
const days = fc.record({
  vcpu: fc.double({ min: 0, max: 12, noNaN: true }),
  memoryGb: fc.double({ min: 0, max: 24, noNaN: true }),
  diskGb: fc.double({ min: 0, max: 120, noNaN: true }),
});

test('for any use each amount stays or moves one bounded step; the disk never shrinks', () => {
  fc.assert(
    fc.property(allocations, allocations, usages, (current, largest, given) => {
      const { allocation } = recommend(current, given, largest);
      for (const amount of AMOUNTS) {
        if (allocation[amount] === current[amount]) continue;
        assert.ok(Object.values(MACHINE_SIZES).some((size) => size[amount] === allocation[amount]));
        if (allocation[amount] > current[amount]) assert.ok(allocation[amount] <= largest[amount]);
      }
      assert.ok(allocation.diskGb >= current.diskGb);
    }),
  );
});

test('more use never recommends less', () => {
  fc.assert(
    fc.property(
      allocations,
      allocations,
      usages,
      fc.array(fc.tuple(share, share, share)),
      (current, largest, given, more) => {
        const most = (used: number, added: number): number => Math.min(1, used + added);
        const fuller = given.map((sample, index): UsageSample => {
          const [cpu, memory, disk] = more[index % Math.max(1, more.length)] ?? [0, 0, 0];
          return {
            ...sample,
            cpuUsed: sample.cpuUsed === null ? null : most(sample.cpuUsed, cpu),
            memoryUsed: most(sample.memoryUsed, memory),
            diskUsed: most(sample.diskUsed, disk),
          };
        });
        const [less, atLeast] = [
          recommend(current, given, largest).allocation,
          recommend(current, fuller, largest).allocation,
        ];
        for (const amount of AMOUNTS) assert.ok(atLeast[amount] >= less[amount], amount);
      },
    ),
  );
});

test('more use over a whole day never recommends less', () => {
  fc.assert(
    fc.property(allocations, days, days, (current, load, more) => {
      const whole = (used: Load): Allocation => recommend(current, samples(used, current, DAY_MINUTES, 4)).allocation;
      const fuller = {
        vcpu: (load.vcpu ?? 0) + (more.vcpu ?? 0),
        memoryGb: load.memoryGb + more.memoryGb,
        diskGb: load.diskGb + more.diskGb,
      };
      const [less, atLeast] = [whole(load), whole(fuller)];
      for (const amount of AMOUNTS) assert.ok(atLeast[amount] >= less[amount], amount);
    }),
  );
});

test('a followed recommendation is not reversed by the same load and soon settles', () => {
  fc.assert(
    fc.property(allocations, allocations, days, (start, largest, load) => {
      const path: Allocation[] = [start];
      for (;;) {
        const current = path.at(-1) ?? start;
        // The load uses all of each new VM; a day passes on each.
        const next = recommend(current, samples(load, current, DAY_MINUTES, 4), largest).allocation;
        if (AMOUNTS.every((amount) => next[amount] === current[amount])) break;
        path.push(next);
        assert.ok(path.length < 20, 'it never comes to rest');
      }
      for (const amount of AMOUNTS) {
        const [first, last] = [path[0]?.[amount] ?? 0, path.at(-1)?.[amount] ?? 0];
        const direction = Math.sign(last - first);
        for (const [index, step] of path.entries()) {
          if (index === 0) continue;
          const change = step[amount] - (path[index - 1]?.[amount] ?? 0);
          assert.ok(Math.sign(change) * direction >= 0, `${amount} went back`);
        }
      }
    }),
  );
});

test('the same load never makes two sizes recommend each other, even right after a change', () => {
  fc.assert(
    fc.property(allocations, allocations, usages, (current, largest, given) => {
      const once = recommend(current, given, largest).allocation;
      // The old samples also judge the next recommendation.
      const twice = recommend(once, given, largest).allocation;
      for (const amount of AMOUNTS) {
        if (once[amount] > current[amount]) assert.ok(twice[amount] >= once[amount], amount);
        if (once[amount] < current[amount]) assert.ok(twice[amount] <= once[amount], amount);
      }
    }),
  );
});

test('the windows grow, and the thresholds for half empty and nearly full are far apart', () => {
  assert.deepEqual(
    WINDOWS.map(({ lengthMs }) => lengthMs / MINUTE_MS),
    [10, 60, DAY_MINUTES],
  );
  assert.ok(HALF_EMPTY < 0.75 * NEARLY_FULL);
});
