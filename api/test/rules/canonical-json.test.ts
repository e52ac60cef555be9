// Each JSON value has a single canonical text.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { canonicalJson } from '../../src/rules/canonical-json.ts';

/** The same value with the fields of every object in the opposite order. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([name, field]) => [name, reversed(field)]),
  );
}

test('the order of fields does not matter, at any depth', () => {
  fc.assert(fc.property(fc.jsonValue(), (value) => assert.equal(canonicalJson(reversed(value)), canonicalJson(value))));
});

test('the text is JSON of the same value, so that different values differ', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      assert.deepEqual(JSON.parse(canonicalJson(value)), JSON.parse(JSON.stringify(value)));
    }),
  );
});

test('undefined fields are omitted; the order of a list matters', () => {
  assert.equal(canonicalJson({ b: 1, a: undefined }), '{"b":1}');
  assert.notEqual(canonicalJson([1, 2]), canonicalJson([2, 1]));
});
