// Garbage collection after peaks of load.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GarbageAfterPeaks } from '../../src/http/garbage.ts';

const MIB = 1_048_576;

/** Number of collections after each of these loads. */
function collections(loadsMib: number[]): number[] {
  let count = 0;
  const garbage = new GarbageAfterPeaks(() => (count += 1));
  return loadsMib.map((mib) => {
    garbage.observe(mib * MIB);
    return count;
  });
}

test('a peak is followed by a collection once three quarters of it have gone', () => {
  assert.deepEqual(collections([0, 10, 100, 60, 26, 15, 0, 0]), [0, 0, 0, 0, 0, 1, 1, 1]);
});

test('each of several peaks is followed by a collection', () => {
  assert.deepEqual(collections([40, 0, 30, 0, 20, 5]), [0, 1, 1, 2, 2, 3]);
});

test('small peaks and steady load cause none', () => {
  assert.deepEqual(collections([15, 0, 15, 1, 0]), [0, 0, 0, 0, 0]);
  assert.deepEqual(collections([200, 180, 190, 100, 60]), [0, 0, 0, 0, 0]);
});
