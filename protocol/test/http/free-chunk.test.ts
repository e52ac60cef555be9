// Frees chunks of bodies.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FREED_BYTES, freeChunk } from '../../src/http/free-chunk.ts';

test('a long chunk with a buffer of its own is freed', () => {
  const chunk = Buffer.allocUnsafeSlow(FREED_BYTES);
  freeChunk(chunk);
  assert.equal(chunk.byteLength, 0);
});

test('short chunks, and parts of a shared buffer, are kept', () => {
  const short = Buffer.allocUnsafeSlow(FREED_BYTES - 1);
  const shared = Buffer.allocUnsafeSlow(2 * FREED_BYTES);
  const part = shared.subarray(0, FREED_BYTES);
  for (const chunk of [short, part, Buffer.from('pooled')]) freeChunk(chunk);
  assert.deepEqual(
    [short.byteLength, part.byteLength, shared.byteLength],
    [FREED_BYTES - 1, FREED_BYTES, 2 * FREED_BYTES],
  );
});
