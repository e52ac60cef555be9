// docs/adding-a-driver.md is complete: its files contain the example driver, and no other source
// file names that driver.
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const CHECKOUT = join(import.meta.dirname, '../../..');
/** The example driver's name in code. */
const NAME = /'fake'/;

const read = (path: string): string => readFileSync(join(CHECKOUT, path), 'utf8');
const page = read('docs/adding-a-driver.md');
/** Rows of the table: file and the text that it contains. */
const listed = [...page.matchAll(/^\|.* \| `([^`]+)` \| `([^`]+)` \|$/gm)].map(([, path = '', text = '']) => ({
  path,
  text,
}));

test('every file of the driver checklist exists and contains its text of the example', () => {
  assert.equal(listed.length, page.match(/^\| \d/gm)?.length);
  for (const { path, text } of listed) assert.ok(read(path).includes(text), `${path} does not contain ${text}`);
  for (const [, path = ''] of page.matchAll(/`([a-z]+\/[\w/.-]+)`/g)) assert.ok(existsSync(join(CHECKOUT, path)), path);
});

test('the driver checklist names every source file that names the example driver', () => {
  const files = ['host/src', 'machine/src', 'protocol/src', 'api/src'].flatMap((place) =>
    globSync(`${place}/**/*.ts`, { cwd: CHECKOUT }),
  );
  assert.ok(files.length > 100, 'the sources were not found');
  const missing = files.filter((path) => NAME.test(read(path)) && !listed.some((row) => row.path === path));
  assert.deepEqual(missing, []);
});
