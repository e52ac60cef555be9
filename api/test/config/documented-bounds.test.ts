// Variables in docs/operations.md: each has a row, which names the bounds of a number.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { z } from 'zod';
import { readServeConfig } from '../../src/config/config.ts';
import { serveEnvironment } from '../../src/config/environment.ts';

const OPERATIONS = readFileSync(join(import.meta.dirname, '../../../docs/operations.md'), 'utf8').split('\n');
const TESTS_ONLY = ['BERTH_CRASH_AT'];

/** The row with the variable in its first cell, or in its second after a flag. */
function rowOf(variable: string): string | undefined {
  return OPERATIONS.find((line) => new RegExp(`^\\|(?: \`--[a-z-]+\` \\|)?[^|]*\`${variable}\``).test(line));
}

test('docs/operations.md has a row for every variable', () => {
  const missing = Object.keys(serveEnvironment.shape).filter((variable) => rowOf(variable) === undefined);
  assert.deepEqual(missing, TESTS_ONLY);
});

for (const [variable, schema] of Object.entries(serveEnvironment.shape)) {
  const number = schema instanceof z.ZodDefault || schema instanceof z.ZodOptional ? schema.unwrap() : schema;
  if (!(number instanceof z.ZodNumber)) continue;
  const { minValue, maxValue } = number;
  const bounds = [minValue, maxValue].map((value) => value?.toLocaleString('en-US')).join(' to ');
  test(`${variable} accepts its bounds, and the refusal of other values and docs/operations.md name them`, () => {
    const refusal = `${variable}: must be a whole number from ${bounds}`;
    for (const value of [Number(minValue) - 1, Number(maxValue) + 1, Number(minValue) + 0.5, 'many']) {
      const read = (): unknown => readServeConfig({ [variable]: String(value) });
      assert.throws(read, (error: Error) => error.message.split('; ').includes(refusal));
    }
    for (const value of [minValue, maxValue]) assert.equal(number.parse(String(value)), value);
    const plain = (text = ''): string => text.replaceAll(/(\d),(?=\d{3})/g, '$1');
    assert.match(plain(rowOf(variable)), new RegExp(`\\b${plain(bounds)}\\b`));
  });
}
