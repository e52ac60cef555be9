// Billing periods tile time: every millisecond lies in exactly one of them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { periodAt } from '../../../src/rules/billing/period.ts';

const DAY_MS = 86_400_000;
const instant = fc.date({
  min: new Date('1970-01-01T00:00:00.000Z'),
  max: new Date('2400-12-31T23:59:59.999Z'),
  noInvalidDate: true,
});
/** Anchors where month lengths matter: 28 February to 1 March, and the ends of all other months. */
const lateAnchor = fc
  .record({
    year: fc.integer({ min: 1996, max: 2105 }),
    month: fc.integer({ min: 0, max: 11 }),
    day: fc.integer({ min: 28, max: 31 }),
    ms: fc.integer({ min: 0, max: DAY_MS - 1 }),
  })
  .filter(({ year, month, day }) => day <= new Date(Date.UTC(year, month + 1, 0)).getUTCDate())
  .map(({ year, month, day, ms }) => new Date(Date.UTC(year, month, day) + ms));
const anchors = fc.oneof(instant, lateAnchor);

const utc = (text: string): Date => new Date(`${text}Z`);
const told = (anchor: Date, at: Date): string[] => {
  const { startsAt, endsAt } = periodAt(anchor, at);
  return [startsAt, endsAt].map((bound) => bound.toISOString().replace(/T00:00:00\.000Z$/, ''));
};

test('an instant lies in its period, whose start belongs to it and whose end to the next', () => {
  fc.assert(
    fc.property(anchors, instant, (anchor, at) => {
      const { startsAt, endsAt } = periodAt(anchor, at);
      assert.ok(startsAt <= at && at < endsAt);
      assert.deepEqual(periodAt(anchor, startsAt), { startsAt, endsAt });
      assert.deepEqual(periodAt(anchor, new Date(endsAt.getTime() - 1)), { startsAt, endsAt });
    }),
    { numRuns: 2_000 },
  );
});

test('periods of a thousand years have no gaps or overlaps and last 28 to 31 days', () => {
  fc.assert(
    fc.property(anchors, (anchor) => {
      let { startsAt, endsAt } = periodAt(anchor, anchor);
      assert.equal(startsAt.getTime(), anchor.getTime());
      for (let months = 1; months <= 12_000; months += 1) {
        const next = periodAt(anchor, endsAt);
        assert.equal(next.startsAt.getTime(), endsAt.getTime());
        const days = (next.endsAt.getTime() - next.startsAt.getTime()) / DAY_MS;
        assert.ok(Number.isInteger(days) && days >= 28 && days <= 31, String(days));
        ({ startsAt, endsAt } = next);
      }
      assert.equal(
        (startsAt.getUTCFullYear() - anchor.getUTCFullYear()) * 12 + startsAt.getUTCMonth() - anchor.getUTCMonth(),
        12_000,
      );
    }),
    { numRuns: 20 },
  );
});

test("periods begin at the anchor's time and day, or on the last day of a shorter month", () => {
  fc.assert(
    fc.property(anchors, instant, (anchor, at) => {
      const { startsAt } = periodAt(anchor, at);
      assert.equal(startsAt.toISOString().slice(-13), anchor.toISOString().slice(-13));
      const isLast = new Date(startsAt.getTime() + DAY_MS).getUTCDate() === 1;
      const [day, wanted] = [startsAt.getUTCDate(), anchor.getUTCDate()];
      assert.ok(day === wanted || (isLast && day < wanted), startsAt.toISOString());
    }),
    { numRuns: 2_000 },
  );
});

test("a period's start with the same day as the anchor gives the same periods as the anchor", () => {
  fc.assert(
    fc.property(anchors, instant, instant, (anchor, somewhere, at) => {
      const { startsAt } = periodAt(anchor, somewhere);
      fc.pre(startsAt.getUTCDate() === anchor.getUTCDate());
      assert.deepEqual(periodAt(startsAt, at), periodAt(anchor, at));
    }),
    { numRuns: 1_000 },
  );
});

for (const [anchor, at, startsAt, endsAt] of [
  ['2026-01-31T00:00:00', '2026-02-27T23:59:59.999', '2026-01-31', '2026-02-28'],
  ['2026-01-31T00:00:00', '2026-02-28T00:00:00', '2026-02-28', '2026-03-31'],
  ['2026-01-31T00:00:00', '2026-04-29T12:00:00', '2026-03-31', '2026-04-30'],
  ['2026-01-30T00:00:00', '2026-03-01T00:00:00', '2026-02-28', '2026-03-30'],
  ['2026-01-29T00:00:00', '2028-02-29T00:00:00', '2028-02-29', '2028-03-29'],
  ['2028-02-29T00:00:00', '2029-03-01T00:00:00', '2029-02-28', '2029-03-29'],
  ['2028-02-29T00:00:00', '2032-02-29T00:00:00', '2032-02-29', '2032-03-29'],
  ['2096-02-29T00:00:00', '2100-02-28T00:00:00', '2100-02-28', '2100-03-29'],
  ['2026-12-31T00:00:00', '2027-02-27T00:00:00', '2027-01-31', '2027-02-28'],
  ['2026-12-15T00:00:00', '2027-01-01T00:00:00', '2026-12-15', '2027-01-15'],
  ['2026-06-15T00:00:00', '2026-06-14T23:59:59.999', '2026-05-15', '2026-06-15'],
] as const) {
  test(`from anchor ${anchor}, ${at} lies in ${startsAt} to ${endsAt}`, () => {
    assert.deepEqual(told(utc(anchor), utc(at)), [startsAt, endsAt]);
  });
}
