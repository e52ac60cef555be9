// A short fuzzer run on the driver without VMs: every request gets a response that matches the
// contract. Longer runs are started by hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FUZZ_KINDS } from './kinds.ts';
import { runFuzz } from './run.ts';

const SEED = '1';

test('random file and preview requests all get a response that matches the contract, and no 500', async () => {
  const report = await runFuzz({
    seed: SEED,
    requests: 500,
    clients: 4,
    kinds: FUZZ_KINDS,
    driver: 'fake',
    say: (line) => console.log(line),
    signal: new AbortController().signal,
  });
  console.log(report.lastLine(SEED));
  assert.deepEqual(report.findings, []);
  assert.ok(report.requests >= 500);
  const tally = report.tally().join('\n');
  for (const part of [
    'readFile: 200',
    'writeFile: 200',
    'execInSandbox: 200',
    'createPreview: 201',
    'of the app',
    'preview, odd bytes',
    'preview, changed bytes',
  ])
    assert.ok(tally.includes(part), `${part} is not in\n${tally}`);
});
