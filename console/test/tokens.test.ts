// The console has the colours of the sign-in pages.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '../..');

/** Custom properties of the first block after `opening`. */
function tokensOf(path: string, opening: string): Record<string, string> {
  const text = readFileSync(join(ROOT, path), 'utf8');
  const start = text.indexOf(opening);
  assert.notEqual(start, -1, `${path}: ${opening}`);
  const block = text.slice(start + opening.length, text.indexOf('}', start));
  return Object.fromEntries([...block.matchAll(/(--[\w-]+):\s*([^;]+);/g)].map(([, name, value]) => [name, value]));
}

test('light and dark colours equal those of the sign-in pages', () => {
  const pages = 'api/src/pages/parts/pages.css';
  const tokens = 'console/src/theme/tokens.css';
  const light = tokensOf(pages, ':root {');
  const dark = tokensOf(pages, '(prefers-color-scheme: dark) {\n  :root {');
  assert.ok(Object.keys(light).length > 15);
  assert.deepEqual(Object.keys(dark), Object.keys(light));
  assert.deepEqual(tokensOf(tokens, ':root {'), light);
  assert.deepEqual(tokensOf(tokens, ":root[data-theme='dark'] {"), dark);
});
