// A short chaos run: nothing acknowledged is lost, nothing leaks, no time is metered twice or left
// open. Longer runs are started by hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runChaos } from './run.ts';

const SEED = '1';
const MINUTES = 1.25;

test('killed processes, a full disk and hung guests lose nothing that clients saw confirmed', async () => {
  const report = await runChaos({
    seed: SEED,
    minutes: MINUTES,
    clients: 3,
    disturbanceMs: 5_000,
    say: (line) => console.log(line),
    signal: new AbortController().signal,
  });
  console.log(report.tally().join('\n'));
  console.log(report.lastLine(SEED, MINUTES));
  assert.deepEqual(report.findings, []);
  // The run was meaningful: it created data, and faults that could have lost it.
  const { operations, kills, sandboxes, files } = report.counts;
  assert.ok(operations > 50 && kills > 3 && sandboxes > 3 && files > 3, JSON.stringify(report.counts));
});
