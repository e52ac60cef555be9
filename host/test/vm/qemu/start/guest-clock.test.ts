import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clockFault, tscKhzIn, type ClockReading } from '../../../../src/vm/qemu/start/guest-clock.ts';

const FIRST: ClockReading = { sentMs: 1_000, answeredMs: 1_020, uptimeMs: 500 };

test('a steady clock is distinguished from an unsteady one, within the precision of the readings', () => {
  const after = (uptimeMs: number): string | null =>
    clockFault(FIRST, { sentMs: 11_000, answeredMs: 11_030, uptimeMs });
  assert.equal(after(500 + 10_000), null);
  // 9,980 to 10,030 ms passed on the host; half a percent is tolerated for the kernel's correction.
  assert.equal(after(500 + 9_931), null);
  assert.equal(after(500 + 10_080), null);
  assert.match(after(500 + 9_925) ?? '', /does not keep time: 9925 ms passed in it, 9980 to 10030 ms outside/);
  assert.match(after(500 + 10_085) ?? '', /does not keep time/);
  assert.match(after(500 + 20_000) ?? '', /does not keep time/);
});

test("the counter's rate is read from kernel messages that have it", () => {
  const messages = `[    0.032000] tsc: Detected 2596.240 MHz processor
[    4.131310] tsc: Refined TSC clocksource calibration: 2596.105 MHz
[    4.169648] clocksource: Switched to clocksource tsc`;
  assert.equal(tscKhzIn(messages), 2_596_105);
  assert.equal(tscKhzIn('[    0.032000] tsc: Detected 2596.240 MHz processor'), null);
});
