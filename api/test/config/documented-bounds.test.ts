// Bounds of the variables in docs/operations.md.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { z } from 'zod';
import { serveEnvironment } from '../../src/config/environment.ts';

const OPERATIONS = readFileSync(join(import.meta.dirname, '../../../docs/operations.md'), 'utf8');

for (const [variable, schema] of Object.entries(serveEnvironment.shape)) {
  const number = schema instanceof z.ZodDefault ? schema.unwrap() : schema;
  const row = OPERATIONS.split('\n').find((line) => line.startsWith(`| \`${variable}\` `));
  if (!(number instanceof z.ZodNumber) || row === undefined) continue;
  test(`docs/operations.md names the bounds of ${variable}`, () => {
    const { minValue, maxValue } = number;
    assert.ok(row.replaceAll(/(\d),(?=\d{3})/g, '$1').includes(`${minValue} to ${maxValue}`), row);
  });
}
