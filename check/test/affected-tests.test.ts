import assert from 'node:assert/strict';
import { test } from 'node:test';
import { affectedTests } from '../source/affected-tests.ts';
import { readTree } from '../source/tree.ts';
import { sourceFile } from './source-file.ts';

const FILES = [
  sourceFile('api/src/rule.ts', ''),
  sourceFile('api/src/main.ts', '', ['api/src/rule.ts']),
  sourceFile('api/test/world.ts', "join(import.meta.dirname, '../src/main.ts')"),
  sourceFile('api/test/rule.test.ts', '', ['api/src/rule.ts']),
  sourceFile('api/test/main.test.ts', '', ['api/test/world.ts']),
  sourceFile('contract/test/document.test.ts', "readFile('../../openapi.json')"),
  sourceFile('e2e/story.test.ts', "spawn('host/src/main.ts')"),
  sourceFile('host/src/main.ts', ''),
];

test('a change affects tests that reach the file through imports and through paths in strings', () => {
  assert.deepEqual(affectedTests(FILES, ['api/src/rule.ts']), ['api/test/rule.test.ts', 'api/test/main.test.ts']);
  assert.deepEqual(affectedTests(FILES, ['api/test/rule.test.ts']), ['api/test/rule.test.ts']);
  assert.deepEqual(affectedTests(FILES, ['host/src/main.ts']), ['e2e/story.test.ts']);
});

test('a document affects the tests that name it, the guest daemon those with real VMs', () => {
  assert.deepEqual(affectedTests(FILES, ['openapi.json']), ['contract/test/document.test.ts']);
  assert.deepEqual(affectedTests(FILES, ['guest/src/main.ts']), ['e2e/story.test.ts']);
  assert.deepEqual(affectedTests(FILES, ['LICENSE']), []);
});

test('a change of the dependencies affects all tests', () => {
  const all = FILES.map(({ path }) => path).filter((path) => path.endsWith('.test.ts'));
  assert.deepEqual(affectedTests(FILES, ['package-lock.json']), all);
});

test('in this tree, a rule of the API affects its own test and the API, and no test of the guest', () => {
  const tests = affectedTests(readTree(), ['api/src/rules/page.ts']);
  assert.ok(tests.includes('api/test/rules/page.test.ts') && tests.includes('api/test/main.test.ts'));
  assert.ok(tests.includes('e2e/crash/crash.long.test.ts'), 'a program that a test starts by its path');
  assert.deepEqual(
    tests.filter((path) => path.startsWith('guest/')),
    [],
  );
});
