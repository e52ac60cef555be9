import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { figureOf, renderTable } from '../world/statistics.ts';

test('statistics of one value are that value throughout', () => {
  assert.deepEqual(figureOf([7]), { min: 7, median: 7, p95: 7, max: 7 });
});

test('the median of an even count lies between the middle two and p95 is a measured value', () => {
  assert.deepEqual(figureOf([4, 1, 3, 2]), { min: 1, median: 2.5, p95: 4, max: 4 });
  const hundred = Array.from({ length: 100 }, (_, index) => index + 1);
  assert.deepEqual(figureOf(hundred), { min: 1, median: 50.5, p95: 95, max: 100 });
});

test('figures are ordered for any measurement', () => {
  fc.assert(
    fc.property(fc.array(fc.double({ noNaN: true, min: 0, max: 1e6 }), { minLength: 1 }), (values) => {
      const { min, median, p95, max } = figureOf(values);
      assert.ok(min <= median && median <= max && min <= p95 && p95 <= max);
    }),
  );
});

test('an empty measurement is an error rather than a zero', () => {
  assert.throws(() => figureOf([]), /no values/);
});

test('a table has a line for each row, with its count and unit', () => {
  const text = renderTable([{ label: 'create', unit: 'ms', count: 2, figure: figureOf([1, 2]) }]);
  assert.match(text.split('\n')[2] ?? '', /^create\s+ms\s+2\s+1\.0\s+1\.5\s+2\.0\s+2\.0$/);
});
