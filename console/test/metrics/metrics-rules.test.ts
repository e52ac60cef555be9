// Points of the charts, without a browser.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { api } from '@berth/sdk';
import { pointsSince, thinned } from '../../src/rules/metrics.ts';

const START = Date.UTC(2026, 0, 1);
const at = (seconds: number): string => new Date(START + seconds * 1_000).toISOString();
const MIB = 2 ** 20;

function past(seconds: number, residentMemoryMib: number | null): api.MetricsHistory['points'][number] {
  const rates = { cpuUsedPercent: 1, receivedBytesPerSecond: 1, sentBytesPerSecond: 1 };
  return { at: at(seconds), residentMemoryMib, unsharedMemoryMib: 1, diskUsedMib: 1, ...rates };
}

function reading(seconds: number, cpuSeconds: number, receivedBytes: number): api.LiveMetrics {
  const network = { receivedBytes, sentBytes: 0 };
  const part = { totalMib: 1_000, usedMib: 100, usedPercent: 10 };
  return {
    sampledAt: at(seconds),
    guest: {
      uptimeSeconds: 1,
      cpu: { vcpu: 2, usedPercent: null, busySeconds: 0 },
      load: { oneMinute: 0, fiveMinutes: 0, fifteenMinutes: 0 },
      memory: part,
      disk: part,
      network,
      processCount: 1,
    },
    host: { cpuSeconds, residentMemoryMib: 7, unsharedMemoryMib: 1, diskUsedMib: 1, network },
  };
}

const secondsOf = (points: readonly { atMs: number }[]): number[] => points.map(({ atMs }) => (atMs - START) / 1_000);

test('live readings replace the points of the history near them', () => {
  const history = { stepSeconds: 10, points: [past(0, 5), past(10, 5), past(20, 5)] };
  const points = pointsSince(START, history, [reading(20, 0, 0), reading(22, 1, 0), reading(24, 2, 1_000)]);
  assert.deepEqual(secondsOf(points), [0, 10, 22, 24]);
  assert.deepEqual(
    points.map(({ resident }) => resident),
    [5 * MIB, 5 * MIB, 7 * MIB, 7 * MIB],
  );
  assert.deepEqual(secondsOf(pointsSince(START + 20_000, history, [])), [20]);
});

test('a first reading alone is shown without rates, and behind others not at all', () => {
  const alone = pointsSince(START, undefined, [reading(0, 5, 5)]);
  assert.deepEqual([secondsOf(alone), alone[0]?.cpu, alone[0]?.resident], [[0], null, 7 * MIB]);
  const history = { stepSeconds: 10, points: [past(0, 5)] };
  assert.deepEqual(secondsOf(pointsSince(START, history, [reading(12, 5, 5)])), [0]);
});

test('rates of live readings are means since the reading before, and unknown after a wake', () => {
  const points = pointsSince(START, undefined, [
    reading(0, 0, 0),
    reading(2, 1, 4_096),
    reading(4, 99, 4_096),
    reading(6, 0, 0),
  ]);
  assert.deepEqual(
    points.map(({ cpu, received }) => [cpu, received]),
    [
      [25, 2_048],
      [100, 0],
      [null, null],
    ],
  );
});

test('a gap is a point without figures, told by the host or found by its length', () => {
  const history = { stepSeconds: 10, points: [past(0, 5), past(10, null), past(100, 5)] };
  const points = pointsSince(START, history, [reading(100, 0, 0), reading(102, 0, 0), reading(160, 0, 0)]);
  assert.deepEqual(secondsOf(points), [0, 10, 102, 112, 160]);
  assert.deepEqual(
    points.map(({ resident }) => resident === null),
    [false, true, false, true, false],
  );
});

test('a table has at most its limit of points, at even distances, and always the newest', () => {
  const points = pointsSince(
    START,
    { stepSeconds: 10, points: Array.from({ length: 360 }, (_, step) => past(step * 10, step)) },
    [],
  );
  const rows = thinned(points, 3_600_000, 120);
  assert.equal(rows.length, 120);
  assert.equal(rows.at(-1), points.at(-1));
  assert.deepEqual(secondsOf(rows).slice(0, 3), [20, 50, 80]);
});
