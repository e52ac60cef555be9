// Garbage collection after peaks of load.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GarbageAfterPeaks } from '../../src/http/garbage.ts';

const MIB = 1_048_576;

/** Marks the loads at which garbage is collected. */
function collections(loadsMib: number[]): string {
  let marks = '';
  const garbage = new GarbageAfterPeaks(() => (marks = `${marks.slice(0, -1)}c`));
  for (const mib of loadsMib) {
    marks += '-';
    // Replaced by the collection.
    garbage.observe(mib * MIB);
  }
  return marks;
}

test('quiet after a peak is followed by one collection', () => {
  assert.equal(collections([0, 10, 100, 60, 26, 15, 0, 3, 0, 0, 0]), '-------c---');
});

test('each of several peaks is followed by a collection if it is quiet between', () => {
  assert.equal(collections([40, 0, 0, 0, 30, 0, 20, 5, 0, 0, 0]), '---c-----c-');
});

test('peaks in quick succession, small peaks and steady load cause none', () => {
  assert.equal(collections([40, 0, 30, 0, 20, 5, 0, 16, 4, 0, 17, 1]), '------------');
  assert.equal(collections([15, 0, 15, 1, 0, 0, 0]), '-------');
  assert.equal(collections([200, 180, 190, 100, 60, 60, 60]), '-------');
});
