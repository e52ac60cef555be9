import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RateLimit } from '../src/rate-limit.ts';

const taken = (limit: RateLimit, tries: number) =>
  Array.from({ length: tries }, () => limit.take()).filter(Boolean).length;

test('a burst passes after idle time, then the rate, and never more than the burst at once', () => {
  let now = 0;
  const limit = new RateLimit(10, 20, () => now);
  assert.equal(taken(limit, 100), 20);
  now += 1_000;
  assert.equal(taken(limit, 100), 10);
  now += 50;
  assert.equal(taken(limit, 100), 0, 'half a token is none');
  now += 50;
  assert.equal(taken(limit, 100), 1);
  now += 3_600_000;
  assert.equal(taken(limit, 100), 20);
});

test('several tokens are taken together or not at all', () => {
  let now = 0;
  const limit = new RateLimit(10, 20, () => now);
  assert.equal(limit.take(21), false);
  assert.equal(limit.take(15), true);
  assert.equal(limit.take(6), false);
  assert.equal(limit.take(5), true);
  now += 100;
  assert.equal(limit.take(), true);
});
