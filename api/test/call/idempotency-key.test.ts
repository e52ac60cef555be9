// Reading the Idempotency-Key header.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readIdempotencyKey } from '../../src/call/idempotency-key.ts';

const read = (...given: string[]): string | undefined => readIdempotencyKey(given);

test('a key is read unchanged; a missing header gives no key', () => {
  assert.equal(read(), undefined);
  assert.equal(read('a b~!'), 'a b~!');
});

test('a repeated header is refused, not joined into a key', () => {
  assert.throws(() => read('a', 'b'), { code: 'invalid_request' });
});
