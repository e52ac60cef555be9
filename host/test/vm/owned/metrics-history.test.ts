import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { VmHistory } from '@berth/protocol/calls/metrics.ts';
import { MetricsHistory } from '../../../src/vm/owned/metrics-history.ts';

const START = Date.UTC(2026, 0, 1);
const PROCESS = { pid: 1, startTicks: '1', bootId: 'b' };

interface Changed {
  cpuMs?: number;
  residentMib?: number;
  networkInBytes?: number;
  process?: typeof PROCESS;
}

function record(history: MetricsHistory, seconds: number, changed: Changed = {}): void {
  history.record({
    unixMs: START + seconds * 1_000,
    vcpu: 2,
    process: PROCESS,
    cpuMs: 0,
    residentMib: 100,
    unsharedMib: 10,
    diskUsedMib: 3,
    networkInBytes: 0,
    networkOutBytes: 0,
    ...changed,
  });
}

/** Seconds from the start and one figure of each point. */
function shown({ points }: VmHistory, field: keyof VmHistory['points'][number]): [number, number | null][] {
  return points.map((point) => [(point.atUnixMs - START) / 1_000, point[field]]);
}

const read = (history: MetricsHistory, windowSeconds: number, seconds: number): VmHistory =>
  history.read(windowSeconds, START + seconds * 1_000);

describe('the history of a VM', () => {
  it('returns amounts, and rates as means since the previous point; the first point has no rates', () => {
    const history = new MetricsHistory();
    record(history, 5);
    record(history, 15, { cpuMs: 5_000, networkInBytes: 12_345, residentMib: 200.5 });
    record(history, 25, { cpuMs: 500_000, networkInBytes: 12_345 });
    const kept = read(history, 60, 26);
    assert.equal(kept.stepSeconds, 10);
    assert.deepEqual(shown(kept, 'residentMib'), [
      [0, 100],
      [10, 200.5],
      [20, 100],
    ]);
    // 5 of 20 s; more than 100 % is the emulator's own time.
    assert.deepEqual(
      kept.points.map(({ cpuUsedPercent, networkInPerSecond }) => [cpuUsedPercent, networkInPerSecond]),
      [
        [null, null],
        [25, 1_234.5],
        [100, 0],
      ],
    );
  });

  it('begins a gap with a point of nulls, and never compares readings across it', () => {
    const history = new MetricsHistory();
    record(history, 5);
    record(history, 45, { networkInBytes: 100 });
    record(history, 55, { networkInBytes: 200 });
    assert.deepEqual(shown(read(history, 600, 60), 'residentMib'), [
      [0, 100],
      [10, null],
      [40, 100],
      [50, 100],
    ]);
    assert.deepEqual(shown(read(history, 600, 60), 'networkInPerSecond'), [
      [0, null],
      [10, null],
      [40, null],
      [50, 10],
    ]);
    // Without later readings, as while it sleeps.
    assert.deepEqual(shown(read(history, 600, 300), 'residentMib').at(-1), [60, null]);
  });

  it('expects no reading of the last two steps yet', () => {
    const history = new MetricsHistory();
    record(history, 5);
    assert.deepEqual(shown(read(history, 600, 29.9), 'residentMib').at(-1), [0, 100]);
    assert.deepEqual(shown(read(history, 600, 30), 'residentMib').at(-1), [10, null]);
  });

  it('has no rates across two processes or decreasing counters', () => {
    const history = new MetricsHistory();
    record(history, 5, { networkInBytes: 10 });
    record(history, 15, { networkInBytes: 1_000, process: { ...PROCESS, pid: 2 } });
    record(history, 25, { networkInBytes: 10 });
    assert.deepEqual(
      shown(read(history, 600, 26), 'networkInPerSecond').map(([, rate]) => rate),
      [null, null, null],
    );
  });

  it('keeps an hour in steps of 10 s and a day in steps of a minute, and drops the oldest', () => {
    const history = new MetricsHistory();
    const dayAndMore = 30 * 3_600;
    for (let seconds = 5; seconds < dayAndMore; seconds += 10)
      record(history, seconds, { networkInBytes: seconds * 7 });
    const hour = read(history, 3_600, dayAndMore - 1);
    assert.deepEqual(
      [hour.stepSeconds, hour.points.length, shown(hour, 'residentMib')[0]?.[0]],
      [10, 360, dayAndMore - 3_600],
    );
    const day = read(history, 86_400, dayAndMore - 1);
    assert.deepEqual(
      [day.stepSeconds, day.points.length, shown(day, 'residentMib')[0]?.[0]],
      [60, 1_440, dayAndMore - 86_400],
    );
    assert.ok(day.points.every(({ networkInPerSecond }) => networkInPerSecond === 7));
    assert.equal(read(history, 600, dayAndMore - 1).points.length, 60);
  });

  it('drops earlier points when the clock is set back', () => {
    const history = new MetricsHistory();
    record(history, 3_605);
    record(history, 5, { residentMib: 50 });
    assert.deepEqual(shown(read(history, 3_600, 10), 'residentMib'), [[0, 50]]);
    assert.deepEqual(shown(read(history, 3_600, 3_599), 'residentMib').at(-1), [10, null]);
  });
});
