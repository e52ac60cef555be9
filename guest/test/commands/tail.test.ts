// The tail of an output: bounded, and never with a partial character at its front.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { Tail } from '../../src/commands/tail.ts';

function tailOf(bytes: Buffer, kept: number, cuts: readonly number[]): Tail {
  const tail = new Tail(kept);
  const points = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  for (let index = 1; index < points.length; index += 1) tail.push(bytes.subarray(points[index - 1], points[index]));

  return tail;
}

test('text that fits is kept whole, in any pieces', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), fc.array(fc.nat(), { maxLength: 8 }), (text, cuts) => {
      const bytes = Buffer.from(text, 'utf8');
      const tail = tailOf(bytes, bytes.length + 1, cuts);
      assert.equal(tail.truncated, false);
      assert.equal(tail.text(), bytes.toString('utf8'));
    }),
  );
});

test('text that does not fit keeps as many whole characters as fit', () => {
  const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 300 });
  fc.assert(
    fc.property(text, fc.integer({ min: 4, max: 64 }), fc.array(fc.nat(), { maxLength: 8 }), (text, kept, cuts) => {
      const bytes = Buffer.from(text, 'utf8');
      fc.pre(bytes.length > kept);
      const tail = tailOf(bytes, kept, cuts);
      const result = tail.text();
      const characters = Array.from(bytes.toString('utf8'));
      let expected = '';
      while (Buffer.byteLength(`${characters.at(-1)}${expected}`) <= kept) expected = `${characters.pop()}${expected}`;

      assert.equal(tail.truncated, true);
      assert.equal(result, expected);
    }),
  );
});

test('any bytes give the text of their end, less at most three bytes, in bounded memory', () => {
  const bytes = fc.uint8Array({ maxLength: 300 });
  fc.assert(
    fc.property(bytes, fc.integer({ min: 1, max: 64 }), fc.array(fc.nat(), { maxLength: 20 }), (array, kept, cuts) => {
      const all = Buffer.from(array);
      const tail = tailOf(all, kept, cuts);
      const last = all.subarray(Math.max(0, all.length - kept));
      const possible = [0, 1, 2, 3].map((skipped) => last.subarray(skipped).toString('utf8'));
      assert.equal(tail.truncated, all.length > kept);
      assert.ok(possible.includes(tail.text()));
      if (!tail.truncated) assert.equal(tail.text(), all.toString('utf8'));
    }),
  );
});

test('text of exactly the limit is not truncated, one byte more is', () => {
  const tail = new Tail(8);
  tail.push(Buffer.from('12345678'));
  assert.deepEqual([tail.text(), tail.truncated], ['12345678', false]);
  tail.push(Buffer.from('9'));
  assert.deepEqual([tail.text(), tail.truncated], ['23456789', true]);
});
