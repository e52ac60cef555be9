// A short chaos run: nothing acknowledged is lost, nothing leaks, no time is metered twice or left
// open. Longer runs are started by hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runChaos } from './run.ts';

const SEED = '1';
/** Upper bound: the run ends when it has enough. */
const MINUTES = 10;

test('killed processes, a full disk and hung guests lose nothing that clients saw confirmed', async () => {
  const report = await runChaos({
    seed: SEED,
    minutes: MINUTES,
    // Turns are few on an emulated CPU; mutants.long.test.ts has many.
    isEnough: ({ counts: { operations, kills, sandboxes, files } }) =>
      operations > 50 && kills > 3 && sandboxes > 3 && files > 3,
    clients: 3,
    agents: 1,
    driver: 'qemu',
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
