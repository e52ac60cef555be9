// The same seed gives the same plan, another seed another plan, and every kind of step occurs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DISTURBANCE_KINDS, disturbancesOf, operationsOf } from './plan.ts';
import { Random } from '../../world/random.ts';

const first = <T>(steps: Generator<T, never>, count: number): T[] =>
  Array.from({ length: count }, () => steps.next().value);

test('the same seed gives the same operations and disturbances', () => {
  const plan = (seed: string): unknown => {
    const random = new Random(seed);
    return [
      first(operationsOf(random.fork('c1')), 200),
      first(operationsOf(random.fork('c2')), 200),
      first(disturbancesOf(random.fork('disturbances'), 5_000), 100),
    ];
  };
  assert.deepEqual(plan('7'), plan('7'));
  assert.notDeepEqual(plan('7'), plan('8'));
});

test('every operation occurs, and every disturbance occurs in each round', () => {
  const kinds = new Set(first(operationsOf(new Random('1')), 500).map(({ kind }) => kind));
  assert.equal(kinds.size, 12);
  const disturbances = first(disturbancesOf(new Random('1'), 5_000), 23).map(({ kind }) => kind);
  assert.deepEqual([...new Set(disturbances)].sort(), [...DISTURBANCE_KINDS].sort());
});

test('numbers are within their bounds', () => {
  const random = new Random('x');
  for (let draw = 0; draw < 1_000; draw += 1) {
    const number = random.integer(3, 5);
    assert.ok(number >= 3 && number <= 5 && Number.isInteger(number));
  }
  assert.deepEqual(
    random.shuffled([1, 2, 3, 4]).toSorted((a, b) => a - b),
    [1, 2, 3, 4],
  );
});
