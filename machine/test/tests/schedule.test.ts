import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import { test } from 'node:test';
import { formatCosts, parseCosts } from '../../src/tests/costs.ts';
import { describeSlowest } from '../../src/tests/report.ts';
import {
  expectedMinutes,
  hasRoom,
  longestFirst,
  runOnIdleCores,
  timeoutMs,
  type Group,
} from '../../src/tests/schedule.ts';

const cost = (seconds: number) => ({ seconds, cpuSeconds: null });

test('the longest file starts first; an unmeasured file counts as half a minute', () => {
  const costs = new Map([
    ['short', cost(1)],
    ['long', cost(90)],
    ['middle', cost(31)],
  ]);
  assert.deepEqual(longestFirst([['short'], ['new'], ['middle'], ['long']], costs).flat(), [
    'long',
    'middle',
    'new',
    'short',
  ]);
});

test('a run takes the time of its files, divided by the cores, in whole minutes', () => {
  const costs = new Map([['long', cost(90 * availableParallelism())]]);
  assert.equal(expectedMinutes(['long'], costs), 2);
  assert.equal(expectedMinutes([], costs), 0);
});

test('a file times out after ten times its cost, within 10 and 30 minutes', () => {
  const minutes = [cost(2), cost(60), cost(400), undefined].map((of) => timeoutMs(of) / 60_000);
  assert.deepEqual(minutes, [10, 10, 30, 20]);
});

test('two files always run at once; more need idle cores and free memory, up to six', () => {
  const idle = { running: 2, idleShare: 0.5, freeBytes: 2 ** 34 };
  assert.equal(hasRoom({ running: 1, idleShare: 0, freeBytes: 0 }), true);
  assert.equal(hasRoom(idle), true);
  assert.equal(hasRoom({ ...idle, idleShare: 0.2 }), false);
  assert.equal(hasRoom({ ...idle, freeBytes: 2 ** 30 }), false);
  assert.equal(hasRoom({ ...idle, running: 5 }), true);
  assert.equal(hasRoom({ ...idle, running: 6 }), false);
});

test('each file runs once, in order, beside at least one other', async () => {
  const groups = Array.from({ length: 9 }, (_, index): Group => [String(index)]);
  const started: Group[] = [];
  let running = 0;
  await runOnIdleCores(groups, async (group) => {
    started.push(group);
    running += 1;
    assert.ok(running <= 6);
    await new Promise(setImmediate);
    running -= 1;
  });
  assert.deepEqual(started, groups);
  await runOnIdleCores([], () => Promise.reject(new Error('there is nothing to run')));
});

test('a run rejects when a file rejects', async () => {
  await assert.rejects(
    runOnIdleCores([['a'], ['b']], () => Promise.reject(new Error('on purpose'))),
    /on purpose/,
  );
});

test('the table of costs is read back as written', () => {
  const costs = new Map([
    ['api/test/a.test.ts', { seconds: 12.3, cpuSeconds: 10.1 }],
    ['e2e/b.test.ts', { seconds: 3, cpuSeconds: null }],
  ]);
  const table = formatCosts(costs);
  assert.deepEqual(parseCosts(table), costs);
  assert.match(table, /^\| api \(1 files\) \| 12\.3 \| 10\.1 \| 2\.2 \|$/m);
});

test('the closing list has the ten slowest files', () => {
  const files = Array.from({ length: 12 }, (_, index) => ({ file: `file-${index}`, cost: cost(index) }));
  const listed = [...describeSlowest(files).matchAll(/file-(\d+)/g)].map(([, index]) => Number(index));
  assert.deepEqual(listed, [11, 10, 9, 8, 7, 6, 5, 4, 3, 2]);
});
