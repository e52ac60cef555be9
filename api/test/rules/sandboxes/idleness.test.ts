// Idle sleep: every branch of the rule, with a given clock.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { IDLE_MINUTES } from '@berth/contract/route/limits.ts';
import fc from 'fast-check';
import { BUSY_CPU_SHARE, idleness, type Idleness, type IdlenessInput } from '../../../src/rules/sandboxes/idleness.ts';

const NOW = Date.parse('2026-01-31T12:00:00Z');
const MINUTE_MS = 60_000;

const input = (changed: Partial<IdlenessInput> = {}, unusedMs = IDLE_MINUTES.default * MINUTE_MS): IdlenessInput => ({
  now: NOW,
  mode: 'persistent',
  persistencePolicy: 'sleep_resume',
  idleMinutes: null,
  lastActiveAt: NOW - unusedMs,
  cpuShare: 0.01,
  ...changed,
});

const CASES: [string, IdlenessInput, Idleness][] = [
  ['is idle after the default time of 30 minutes', input(), 'idle'],
  ['is quiet a millisecond before', input({}, IDLE_MINUTES.default * MINUTE_MS - 1), 'quiet'],
  ["is idle after its project's own time", input({ idleMinutes: 1 }, MINUTE_MS), 'idle'],
  [
    "is quiet before its project's own time, however long the default was passed",
    input({ idleMinutes: 120 }, 119 * MINUTE_MS),
    'quiet',
  ],
  ['never sleeps where the project says 0', input({ idleMinutes: 0 }, 1_000 * MINUTE_MS), 'exempt'],
  ['never sleeps when it is always_on', input({ persistencePolicy: 'always_on' }, 1_000 * MINUTE_MS), 'exempt'],
  ['never sleeps when it is ephemeral', input({ mode: 'ephemeral' }, 1_000 * MINUTE_MS), 'exempt'],
  [
    'is in use while its processors are at work, whatever the last call was',
    input({ cpuShare: 0.9 }, 1_000 * MINUTE_MS),
    'in_use',
  ],
  ['is in use also right after a call', input({ cpuShare: 0.9 }, 0), 'in_use'],
  ['is not in use at the share that idle guests may reach', input({ cpuShare: BUSY_CPU_SHARE }), 'idle'],
  ['is quiet while nobody knows what its processors do', input({ cpuShare: null }, 1_000 * MINUTE_MS), 'quiet'],
  ['is quiet when its last use lies ahead of the clock', input({}, -5 * MINUTE_MS), 'quiet'],
];

for (const [what, given, expected] of CASES) {
  test(`a sandbox ${what}`, () => {
    assert.equal(idleness(given), expected);
  });
}

test('later use or more work never makes a sandbox idle', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 100 * MINUTE_MS }),
      fc.integer({ min: 0, max: 100 * MINUTE_MS }),
      fc.double({ min: 0, max: 8, noNaN: true }),
      fc.double({ min: 0, max: 8, noNaN: true }),
      fc.option(fc.integer({ min: 0, max: 90 })),
      (unusedMs, sooner, share, more, idleMinutes) => {
        const before = idleness(input({ idleMinutes, cpuShare: share }, unusedMs));
        const after = idleness(input({ idleMinutes, cpuShare: share + more }, unusedMs - sooner));
        if (before !== 'idle') assert.notEqual(after, 'idle');
      },
    ),
  );
});
