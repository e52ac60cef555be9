// The remedy of each error.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ERRORS } from '../src/route/errors.ts';
import { REMEDIES } from '../src/route/remedies.ts';

test('every error has one remedy of one sentence that begins with a capital', () => {
  assert.deepEqual(Object.keys(REMEDIES).toSorted(), Object.keys(ERRORS).toSorted());
  for (const [code, remedy] of Object.entries(REMEDIES)) {
    assert.match(remedy, /^[A-Z][a-z][^\n`]*[^.]\.$/, code);
    assert.doesNotMatch(remedy, /\. [A-Z]/, code);
    assert.ok(remedy.length <= 120, code);
  }
});
