// docs/adding-an-endpoint.md is complete: its files contain its example route, and no other source
// file does.
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ROUTES } from '../src/routes.ts';

const CHECKOUT = join(import.meta.dirname, '../..');
const EXAMPLE = 'revokePreview';
/** Workspaces whose sources and sweeps a route touches. */
const PLACES = ['contract/src', 'api/src', 'api/test/sweeps', 'sdk/src', 'cli/src'];

const read = (path: string): string => readFileSync(join(CHECKOUT, path), 'utf8');
const page = read('docs/adding-an-endpoint.md');
/** Rows of both tables: file and the text that it contains. */
const listed = [...page.matchAll(/^\|.* \| `([^`]+)` \| `([^`]+)` \|$/gm)].map(([, path = '', text = '']) => ({
  path,
  text,
}));

test('every file of the endpoint checklist exists and contains its text of the example', () => {
  assert.ok(
    ROUTES.some(({ name }) => name === EXAMPLE),
    'the example is not a route',
  );
  assert.equal(listed.length, page.match(/^\| (?!---|Step|Command)/gm)?.length);
  for (const { path, text } of listed) assert.ok(read(path).includes(text), `${path} does not contain ${text}`);
});

test('every path and npm script that the endpoint checklist names exists', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  for (const [, script = ''] of page.matchAll(/`npm run ([\w:]+)`/g)) assert.ok(script in scripts, script);
  for (const [, path = ''] of page.matchAll(/`([a-z]+\/[\w/.-]+)`/g)) assert.ok(existsSync(join(CHECKOUT, path)), path);
});

test('the endpoint checklist names every source file that contains the example route', () => {
  const files = PLACES.flatMap((place) => globSync(`${place}/**/*.ts`, { cwd: CHECKOUT }));
  assert.ok(files.length > 100, 'the sources were not found');
  const name = new RegExp(`\\b${EXAMPLE}\\b`);
  const missing = files.filter((path) => name.test(read(path)) && !listed.some((row) => row.path === path));
  assert.deepEqual(missing, []);
});
