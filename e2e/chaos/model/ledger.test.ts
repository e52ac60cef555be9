// The check of the ledger finds each kind of wrong interval, and passes correct ones.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UsageInterval } from '../../world/database.ts';
import type { Fact } from './known-sandbox.ts';
import { checkLedger, surelyAwake, surelyNotAwake, type LedgerSubject } from './ledger.ts';

const S = 1_000;
const at = (what: Fact['what'], fromSeconds: number, toSeconds = fromSeconds): Fact => ({
  what,
  fromMs: fromSeconds * S,
  toMs: toSeconds * S,
});
const interval = (fromSeconds: number, toSeconds: number | null): UsageInterval => ({
  id: `${fromSeconds}`,
  sandboxId: 'sbx_a',
  fromMs: fromSeconds * S,
  toMs: toSeconds === null ? null : toSeconds * S,
});
/** Awake from 10 to 50, asleep from 60 to 100, awake again from 110. */
const LIFE: LedgerSubject = {
  id: 'sbx_a',
  facts: [
    at('change', 5),
    at('awake', 9, 10),
    at('awake', 50, 51),
    at('change', 55),
    at('not-awake', 59, 60),
    at('change', 100),
    at('awake', 109, 110),
    at('awake', 150, 151),
  ],
  deaths: [],
  awake: true,
};
const NOW_MS = 160 * S;
const findings = (subject: LedgerSubject, ...intervals: UsageInterval[]): string[] =>
  checkLedger(subject, intervals, NOW_MS).map(({ finding }) => finding);

test('client observations become periods that are certainly awake or certainly not', () => {
  assert.deepEqual(surelyAwake(LIFE), [
    { fromMs: 10 * S, toMs: 50 * S },
    { fromMs: 110 * S, toMs: 150 * S },
  ]);
  assert.deepEqual(surelyNotAwake(LIFE, NOW_MS), [{ fromMs: 60 * S, toMs: 100 * S }]);
});

test('one interval per awake period is right, even if a resize splits it', () => {
  assert.deepEqual(findings(LIFE, interval(8, 57), interval(104, null)), []);
  assert.deepEqual(findings(LIFE, interval(8, 30), interval(30, 57), interval(104, null)), []);
});

test('each kind of wrong interval is found', () => {
  assert.deepEqual(findings(LIFE, interval(8, 57), interval(56, 58), interval(104, null)), ['interval-overlapping']);
  assert.deepEqual(findings({ ...LIFE, awake: false }, interval(8, 57), interval(104, null)), ['interval-unclosed']);
  assert.deepEqual(
    findings(LIFE, interval(8, 57)),
    ['interval-wrong', 'interval-wrong'],
    'the second stretch, and none is open',
  );
  assert.deepEqual(findings(LIFE, interval(8, 40), interval(104, null)), ['interval-wrong'], 'ended 10 s early');
  assert.deepEqual(findings(LIFE, interval(8, 80), interval(104, null)), ['interval-wrong'], 'ended 20 s late');
  assert.deepEqual(findings(LIFE, interval(8, null)), ['interval-wrong'], 'never closed while it slept');
});

test('a sandbox past its expiry may have only its last interval open or closed', () => {
  assert.deepEqual(findings({ ...LIFE, awake: null }, interval(8, 57), interval(104, null)), []);
  assert.deepEqual(findings({ ...LIFE, awake: null }, interval(8, 57), interval(104, 155)), []);
  assert.deepEqual(findings({ ...LIFE, awake: null }, interval(8, 57), interval(104, null), interval(156, null)), [
    'interval-overlapping',
    'interval-unclosed',
  ]);
});

test('an interval that ends at the last heartbeat before a death is right', () => {
  const died: LedgerSubject = {
    ...LIFE,
    facts: [at('awake', 9, 10), at('awake', 50, 51), at('not-awake', 56, 57)],
    deaths: [{ atMs: 52 * S, lastWatchedMs: 45 * S }],
    awake: false,
  };
  assert.deepEqual(findings(died, interval(8, 40)), []);
  assert.deepEqual(findings(died, interval(8, 20)), ['interval-wrong']);
});
