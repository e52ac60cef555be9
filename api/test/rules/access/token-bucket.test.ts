// Tokens allowed by a bucket over any sequence of times.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FULL_AFTER_MS, refundToken, takeToken, type Bucket } from '../../../src/rules/access/token-bucket.ts';

const rates = fc.oneof(fc.integer({ min: 1, max: 1_200 }), fc.integer({ min: 1, max: 1_000_000 }));
/** Milliseconds between calls: mostly small, some as of a host that has been up for months. */
const pauses = fc.oneof(
  fc.integer({ min: 0, max: 50 }),
  fc.integer({ min: 0, max: 5_000 }),
  fc.integer({ min: 0, max: 10_000_000_000 }),
);
const clocks = fc.integer({ min: 0, max: 10_000_000_000 });

/** The bucket after `count` tokens were taken at once from a full one. */
function drained(perMinute: number, count: number, nowMs: number): Bucket | undefined {
  let bucket: Bucket | undefined;
  for (let taken = 0; taken < count; taken += 1) bucket = takeToken(bucket, perMinute, nowMs).bucket;
  return bucket;
}

test('a bucket allows its limit at once, then nothing, and is full after a minute', () => {
  let bucket = drained(600, 600, 5_000);
  assert.deepEqual(takeToken(bucket, 600, 5_000), {
    allowed: false,
    bucket: { parts: 0, atMs: 5_000 },
    left: 0,
    fullInSeconds: 60,
    nextInSeconds: 1,
  });
  assert.equal(takeToken(bucket, 600, 5_099.9).allowed, false);
  assert.equal(takeToken(bucket, 600, 5_100).allowed, true);
  bucket = takeToken(bucket, 600, 5_000 + FULL_AFTER_MS).bucket;
  assert.deepEqual(bucket, takeToken(undefined, 600, 5_000 + FULL_AFTER_MS).bucket);
});

test('remaining tokens and reset time are whole numbers of tokens and seconds', () => {
  const { left, fullInSeconds, nextInSeconds } = takeToken(undefined, 600, 0);
  assert.deepEqual([left, fullInSeconds, nextInSeconds], [599, 1, 0]);
  const slow = takeToken(takeToken(undefined, 1, 0).bucket, 1, 1_500);
  assert.deepEqual([slow.allowed, slow.left, slow.fullInSeconds, slow.nextInSeconds], [false, 0, 59, 59]);
});

test('no window of time allows more than the limit plus its refill', () => {
  fc.assert(
    fc.property(rates, clocks, fc.array(pauses, { minLength: 1, maxLength: 300 }), (perMinute, start, steps) => {
      // Occasional bursts, so that every rate reaches the limit.
      const given: { atMs: number; count: number }[] = [];
      let bucket: Bucket | undefined;
      let nowMs = start;
      for (const [index, step] of steps.entries()) {
        nowMs += step;
        let count = 0;
        for (let tries = 0; tries < (index % 10 === 0 ? Math.min(perMinute + 1, 2_000) : 2); tries += 1) {
          const taken = takeToken(bucket, perMinute, nowMs);
          bucket = taken.bucket;
          if (taken.allowed) count += 1;
        }
        given.push({ atMs: nowMs, count });
      }
      for (let from = 0; from < given.length; from += 1) {
        let sum = 0;
        for (const { atMs, count } of given.slice(from)) {
          sum += count;
          const elapsedMs = atMs - (given[from]?.atMs ?? 0);
          assert.ok(
            sum * 60_000 <= perMinute * (60_000 + elapsedMs),
            `${sum} of ${perMinute} a minute in ${elapsedMs} ms`,
          );
        }
      }
    }),
    { numRuns: 60 },
  );
});

test('a caller that keeps to the rate is never refused', () => {
  fc.assert(
    fc.property(fc.constantFrom(1, 7, 60, 600, 999), clocks, (perMinute, start) => {
      let bucket: Bucket | undefined;
      for (let call = 0; call < 2_000; call += 1) {
        const taken = takeToken(bucket, perMinute, start + Math.ceil((call * 60_000) / perMinute));
        assert.ok(taken.allowed);
        bucket = taken.bucket;
      }
    }),
    { numRuns: 20 },
  );
});

test('a token is available after the reported seconds, and not a second earlier', () => {
  fc.assert(
    fc.property(
      rates,
      clocks,
      fc.integer({ min: 0, max: 59_999 }),
      fc.integer({ min: 0, max: 200_000 }),
      (perMinute, atMs, parts, laterMs) => {
        const refused = takeToken({ parts, atMs }, perMinute, atMs + (laterMs % 2 === 0 ? 0 : laterMs / 1_000));
        if (refused.allowed) return;
        const nowMs = refused.bucket.atMs;
        assert.ok(Number.isInteger(refused.nextInSeconds) && refused.nextInSeconds >= 1);
        assert.equal(takeToken(refused.bucket, perMinute, nowMs + refused.nextInSeconds * 1_000).allowed, true);
        assert.equal(takeToken(refused.bucket, perMinute, nowMs + (refused.nextInSeconds - 1) * 1_000).allowed, false);
      },
    ),
  );
});

test('a clock set back adds no tokens beyond the limit and its forward steps', () => {
  const jumps = fc.integer({ min: -100_000, max: 100_000 });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1_200 }), fc.array(jumps, { maxLength: 200 }), (perMinute, steps) => {
      let bucket = drained(perMinute, perMinute, 10_000_000);
      let nowMs = 10_000_000;
      let forwardMs = 0;
      let given = 0;
      for (const step of steps) {
        nowMs += step;
        forwardMs += Math.max(0, step);
        for (let tries = 0; tries < 3; tries += 1) {
          const taken = takeToken(bucket, perMinute, nowMs);
          if (taken.allowed) given += 1;
          if (!taken.allowed)
            assert.equal(takeToken(taken.bucket, perMinute, nowMs + taken.nextInSeconds * 1_000).allowed, true);
          bucket = taken.bucket;
        }
      }
      assert.ok(given * 60_000 <= perMinute * forwardMs, `${given} in ${forwardMs} ms forward`);
    }),
  );
});

test('a returned token can be taken again; a full bucket accepts none', () => {
  fc.assert(
    fc.property(rates, clocks, fc.integer({ min: 1, max: 100 }), (perMinute, nowMs, count) => {
      const bucket = drained(perMinute, Math.min(count, perMinute), nowMs);
      const before = takeToken(bucket, perMinute, nowMs);
      const again = refundToken(before.bucket, perMinute, nowMs);
      if (before.allowed) assert.deepEqual(again, bucket);
      const full = refundToken(undefined, perMinute, nowMs);
      assert.deepEqual(takeToken(full, perMinute, nowMs), takeToken(undefined, perMinute, nowMs));
    }),
  );
});
