// Estimated cost of machine time.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { estimatedCostUsd, machineHours } from '../../../src/rules/usage/machine-cost.ts';

const RATES = { vcpuHourUsd: 0.04, memoryGbHourUsd: 0.005, diskGbHourUsd: 0.0002 };
const HOUR_MS = 3_600_000;

test('each resource is priced by its own rate and time', () => {
  assert.equal(estimatedCostUsd([{ vcpu: 2, memoryGb: 4, diskGb: 20, ms: HOUR_MS }], RATES), 0.104);
  assert.equal(
    estimatedCostUsd(
      [
        { vcpu: 1, memoryGb: 1, diskGb: 10, ms: HOUR_MS / 2 },
        { vcpu: 4, memoryGb: 8, diskGb: 10, ms: HOUR_MS / 4 },
      ],
      RATES,
    ),
    0.074,
  );
  assert.equal(estimatedCostUsd([], RATES), 0);
});

test('milliseconds are summed exactly, so that many short intervals cost as much as a long one', () => {
  const short = Array.from({ length: 3_600 }, () => ({ vcpu: 3, memoryGb: 7, diskGb: 11, ms: 1_000 }));
  assert.equal(
    estimatedCostUsd(short, RATES),
    estimatedCostUsd([{ vcpu: 3, memoryGb: 7, diskGb: 11, ms: HOUR_MS }], RATES),
  );
  assert.equal(machineHours(5_400_000), 1.5);
});
