// List of open entries, in any order of additions and removals.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { OpenList } from '../../../src/services/previews/open-list.ts';

test('the list has all added and not closed entries, newest first', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.constant('add' as const), fc.nat(30))), (steps) => {
      const list = new OpenList<number>();
      const closers: (() => void)[] = [];
      let expected: number[] = [];
      for (const step of steps) {
        if (step === 'add') {
          const item = closers.length;
          closers.push(list.add(item).close);
          expected = [item, ...expected];
        } else {
          // Perhaps none, perhaps one that is closed already.
          closers[step]?.();
          expected = expected.filter((item) => item !== step);
        }
        assert.deepEqual(list.items(), expected);
        assert.equal(list.isEmpty, expected.length === 0);
      }
    }),
  );
});

test('the list can be modified during iteration', () => {
  const list = new OpenList<() => void>();
  const seen: string[] = [];
  const one = list.add(() => seen.push('one'));
  list.add(() => {
    seen.push('two');
    one.close();
    list.add(() => seen.push('three'));
  });
  for (const item of list.items()) item();
  assert.deepEqual(seen, ['two', 'one']);
  assert.equal(list.items().length, 2);
});
