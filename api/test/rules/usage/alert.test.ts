// Alerts at each percentage of a cap.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { uncappedAlert, usageAlertOf } from '../../../src/rules/usage/alert.ts';
import { capMs, isAtCap, type CapUsage } from '../../../src/rules/usage/caps.ts';

const HOUR_MS = 3_600_000;
const PERIOD = { startsAt: new Date('2026-01-15T10:00:00.000Z'), endsAt: new Date('2026-02-15T10:00:00.000Z') };
const standing = (cap: number, usedMs: number): CapUsage => ({
  scope: { kind: 'org', orgId: 'org_a' },
  cap,
  usedMs,
  period: PERIOD,
});
const GRACE = { graceSeconds: 300 };

for (const [usedMs, percentUsed, status] of [
  [0, 0, 'normal'],
  [8 * HOUR_MS - 1, 79.99, 'normal'],
  [8 * HOUR_MS, 80, 'warning'],
  [10 * HOUR_MS - 1, 99.99, 'warning'],
  [10 * HOUR_MS, 100, 'reached'],
  [10 * HOUR_MS + 1, 100, 'exceeded'],
  [25 * HOUR_MS, 250, 'exceeded'],
] as const) {
  test(`${usedMs} ms of a cap of 10 hours are ${percentUsed} % and ${status}`, () => {
    const alert = usageAlertOf(standing(10, usedMs), GRACE);
    assert.deepEqual([alert.percentUsed, alert.status], [percentUsed, status]);
  });
}

test('a cap of zero is reached from the start', () => {
  const { percentUsed, status } = usageAlertOf(standing(0, 0), GRACE);
  assert.deepEqual([percentUsed, status], [100, 'reached']);
});

test('without a cap no usage reaches a limit', () => {
  assert.deepEqual(uncappedAlert(5_000 * HOUR_MS + 36_000, 'org'), {
    percentUsed: 0,
    status: 'normal',
    message: '5000.01 machine hours are used in this billing period. There is no cap on them.',
  });
  assert.equal(
    uncappedAlert(HOUR_MS, 'project').message,
    '1 machine hours are used in this billing period. The project has no cap; a cap of its org applies.',
  );
});

test('an alert message has the usage, and from the warning on the effect and remedy', () => {
  assert.equal(
    usageAlertOf(standing(10, 4.5 * HOUR_MS), GRACE).message,
    '4.5 of 10 machine hours are used in this billing period.',
  );
  for (const used of [8, 10, 12]) {
    const { message } = usageAlertOf(standing(10, used * HOUR_MS), GRACE);
    for (const part of [`${used} of 10 machine hours`, 'org_a', '300 s', 'sandboxMachineHourLimit'])
      assert.ok(message.includes(part), message);
  }
  assert.match(
    usageAlertOf(standing(10, 12 * HOUR_MS), null).message,
    /Overage is enabled: sandboxes continue beyond the cap/,
  );
});

for (const [cap, used, text] of [
  [1, 0.2259, '0.225 of 1'],
  [0.0003908333333333333, 0.0007816666666666666, '0.000781 of 0.00039'],
  [0.0003908333333333333, 0.000001, '0.000001 of 0.00039'],
  [0.1 + 0.2, 0.05, '0.05 of 0.3'],
  [1_000_000, 1_000_000, '1000000 of 1000000'],
  [1, 0, '0 of 1'],
  [5e-324, 1, '1 of 0'],
  [1e-110, 1, '1 of 0'],
] as const) {
  test(`a message rounds ${used} hours of a cap of ${cap} to ${text}`, () => {
    const { message } = usageAlertOf(standing(cap, Math.round(used * HOUR_MS * 1e6) / 1e6), GRACE);
    assert.ok(message.includes(`${text} machine hour`), message);
  });
}

test('100 % is reported exactly when the cap is reached, and percentages never decrease', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 2_000_000 }),
      fc.nat(20_000_000_000),
      fc.nat(1_000_000),
      (thousandths, usedMs, moreMs) => {
        const cap = thousandths / 1_000;
        const [less, more] = [
          usageAlertOf(standing(cap, usedMs), GRACE),
          usageAlertOf(standing(cap, usedMs + moreMs), GRACE),
        ];
        assert.equal(less.percentUsed >= 100, isAtCap(usedMs, cap));
        assert.equal(less.status === 'exceeded', usedMs > capMs(cap));
        assert.ok(less.percentUsed <= more.percentUsed);
      },
    ),
  );
});
