// Reading the Idempotency-Key header.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readIdempotencyKey } from '../../src/call/idempotency-key.ts';

const read = (...given: string[]): string | undefined => readIdempotencyKey(given);

test('a key is taken as it is, and none is none', () => {
  assert.equal(read(), undefined);
  assert.equal(read('a b~!'), 'a b~!');
});

test('a header that is there twice is refused, rather than joined to a key that nobody chose', () => {
  assert.throws(() => read('a', 'b'), { code: 'invalid_request' });
});
