// The clock of a restored guest: the time that is set, and the refusal that makes the host repeat.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ClockStep } from '../../src/machine/clock.ts';
import type { KernelCalls } from '../../src/machine/kernel-calls.ts';

const stepOf = (offMs: number, waitedMs = 0): ClockStep =>
  new ClockStep({ clockUnixMs: Date.now() + offMs, entropy: 'AQID' }, performance.now() - waitedMs);

test('the time that is set includes the wait since the arrival of the request', async () => {
  let set: [ms: number, entropy: Buffer] | undefined;
  const kernel = {
    setClockAndReseed: (now: () => number, entropy: Buffer) => {
      set = [now() - Date.now(), entropy];
      return Promise.resolve();
    },
  };
  await stepOf(-3_600_000, 600_000).apply(kernel as unknown as KernelCalls);
  assert.ok(set !== undefined && Math.abs(set[0] + 3_000_000) < 60_000, String(set));
  assert.deepEqual(set[1], Buffer.of(1, 2, 3));
});

test('a clock that differs from the time set is an error with the difference, which the host repeats on', () => {
  assert.ok(Math.abs(stepOf(0).readBack() - Date.now()) < 60_000);
  for (const [offMs, message] of [
    [60_000, /^the clock is -\d{5} ms off$/],
    [-60_000, /^the clock is \d{5} ms off$/],
  ] as const)
    assert.throws(() => stepOf(offMs).readBack(), { message });
});
