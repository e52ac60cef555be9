import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { GatheredBytes } from '../../src/http/gathered-bytes.ts';

test('the bytes are those added, in any pieces', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 40_000, size: 'max' }), { maxLength: 12 }), (pieces) => {
      const gathered = new GatheredBytes();
      pieces.forEach((piece) => gathered.add(Buffer.from(piece)));
      assert.equal(gathered.length, gathered.whole().length);
      assert.ok(gathered.whole().equals(Buffer.concat(pieces)));
    }),
    { numRuns: 50 },
  );
});

test('a million one-byte pieces use the memory of a million bytes', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const used = (): number => {
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const before = used();
  const gathered = new GatheredBytes();
  for (let at = 0; at < 1_000_000; at += 1) gathered.add(Buffer.from([at & 255]));
  const after = used();
  assert.equal(gathered.length, 1_000_000);
  assert.ok(after - before < 8 * 2 ** 20, `${after - before} bytes`);
});

test('taken text leaves neither bytes nor memory', () => {
  const gathered = new GatheredBytes();
  gathered.add(Buffer.from('é'.repeat(100_000)));
  const { buffer } = gathered.whole();
  assert.equal(gathered.takeText(), 'é'.repeat(100_000));
  assert.equal(gathered.length, 0);
  assert.equal(buffer.byteLength, 0);
  gathered.add(Buffer.from('again'));
  assert.equal(gathered.takeText(), 'again');
});
