// Shares of a capacity: no owner takes more than half of what the others leave.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { SharedCapacity, type Release } from '../src/shared-capacity.ts';

/** Places that the owner gets when it takes all it can. */
function takeAll(capacity: SharedCapacity, owner: string): Release[] {
  const releases: Release[] = [];
  for (;;) {
    const taken = capacity.take(owner);
    if (typeof taken !== 'function') return releases;
    releases.push(taken);
  }
}

test('greedy owners get half of the free places each, until none is left', () => {
  const capacity = new SharedCapacity(2_048);
  const got = Array.from({ length: 13 }, (_, owner) => takeAll(capacity, `org_${owner}`).length);
  assert.deepEqual(got, [1_024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1, 1, 0]);
  assert.equal(capacity.take('org_0'), 'full');
});

test('a released place is free for others, and counts once however often it is released', () => {
  const capacity = new SharedCapacity(4);
  const [first, second] = takeAll(capacity, 'org_a');
  assert.equal(capacity.take('org_a'), 'share');
  first?.();
  first?.();
  assert.equal(capacity.taken, 1);
  assert.equal(takeAll(capacity, 'org_b').length, 2);
  second?.();
  assert.equal(takeAll(capacity, 'org_b').length, 0);
  assert.equal(takeAll(capacity, 'org_a').length, 1);
});

test('in any order of takes and releases no owner exceeds its share, and no free place is unusable', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 20 }),
      fc.array(fc.record({ owner: fc.integer({ min: 0, max: 4 }), releases: fc.boolean() }), { maxLength: 200 }),
      (places, steps) => {
        const capacity = new SharedCapacity(places);
        const held = new Map<number, Release[]>();
        for (const { owner, releases } of steps) {
          const mine = held.get(owner) ?? [];
          held.set(owner, mine);
          if (releases) {
            mine.pop()?.();
          } else {
            const share = Math.ceil((places - (capacity.taken - mine.length)) / 2);
            const taken = capacity.take(`org_${owner}`);
            // One more would exceed the share exactly when it is refused.
            assert.equal(typeof taken === 'function', mine.length < share);
            if (typeof taken === 'function') mine.push(taken);
          }
          assert.equal(
            capacity.taken,
            [...held.values()].reduce((sum, { length }) => sum + length, 0),
          );
          assert.ok(capacity.taken <= places);
        }
        if (capacity.taken < places) assert.equal(typeof capacity.take('org_new'), 'function');
      },
    ),
  );
});
