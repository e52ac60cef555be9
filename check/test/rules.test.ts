// Each rule passes a tree that keeps it and names the fault of a tree that breaks it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { importCycles } from '../rules/import-cycles.ts';
import { layerDirection } from '../rules/layers.ts';
import { packageExports } from '../rules/package-exports.ts';
import { fileLengths, folderSizes, FOLDER_FILES, TEST_LINES } from '../rules/sizes.ts';
import { SLOW, testTiers } from '../rules/test-tiers.ts';
import { testTitles, titlesOf } from '../rules/test-titles.ts';
import { unusedExports } from '../rules/unused-exports.ts';
import { lineWidths } from '../rules/widths.ts';
import { sourceFile } from './source-file.ts';

test('importCycles reports a cycle between two files of one folder', () => {
  const files = [sourceFile('a/x.ts', '', ['a/y.ts']), sourceFile('a/y.ts', '', ['a/x.ts'])];
  const [fault, ...more] = importCycles(files);
  assert.match(fault ?? '', /files a\/x\.ts, a\/y\.ts/);
  assert.deepEqual(more, []);
});

test('importCycles reports folders that import each other through different files', () => {
  const files = [sourceFile('a/x.ts', '', ['b/y.ts']), sourceFile('b/y.ts', ''), sourceFile('b/z.ts', '', ['a/w.ts'])];
  const faults = importCycles([...files, sourceFile('a/w.ts', '')]);
  assert.equal(faults.length, 1);
  assert.match(faults[0] ?? '', /folders a, b:\s+a\/x\.ts -> b\/y\.ts\s+b\/z\.ts -> a\/w\.ts/);
});

test('importCycles accepts a diamond', () => {
  const files = [sourceFile('a/x.ts', '', ['b/y.ts', 'c/z.ts']), sourceFile('b/y.ts', '', ['d/w.ts'])];
  assert.deepEqual(importCycles([...files, sourceFile('c/z.ts', '', ['d/w.ts']), sourceFile('d/w.ts', '')]), []);
});

test('layerDirection reports an import against the direction, and names the layers allowed', () => {
  const upward = sourceFile('api/src/rules/page.ts', '', ['api/src/store/clock.ts']);
  const allowed = 'contract/src, protocol/src, tldts-icann';
  assert.deepEqual(layerDirection([upward]), [
    `api/src/rules/page.ts imports api/src/store/clock.ts: api/src/rules may import ${allowed}`,
  ]);
});

test('layerDirection accepts imports of the own layer and of a layer below', () => {
  const store = sourceFile('api/src/store/hosts/hosts.ts', '', ['api/src/store/ids.ts', 'api/src/rules/page.ts']);
  assert.deepEqual(layerDirection([store]), []);
});

test('layerDirection reports a package and a Node module that the layer may not import', () => {
  const file = sourceFile('contract/src/route/route.ts', '');
  const imports = ['zod', 'node:fs', 'kysely/migration'].map((specifier) => ({ specifier, target: null }));
  const faults = layerDirection([{ ...file, imports }]);
  assert.deepEqual(faults, [
    'contract/src/route/route.ts imports node:fs: contract/src may import zod',
    'contract/src/route/route.ts imports kysely/migration: contract/src may import zod',
  ]);
});

test('fileLengths allows tests more lines than sources', () => {
  const text = '\n'.repeat(TEST_LINES - 1);
  assert.deepEqual(fileLengths([sourceFile('api/test/long.test.ts', text)]), []);
  assert.equal(fileLengths([sourceFile('api/src/long.ts', text)]).length, 1);
  assert.equal(fileLengths([sourceFile('api/test/long.test.ts', `${text}\n`)]).length, 1);
});

test('folderSizes counts the files directly in a folder', () => {
  const files = Array.from({ length: FOLDER_FILES }, (_, index) => sourceFile(`a/${index}.ts`, ''));
  assert.deepEqual(folderSizes([...files, sourceFile('a/b/x.ts', '')]), []);
  assert.deepEqual(folderSizes([...files, sourceFile('a/x.ts', '')]), ['a: 21 files, limit 20']);
});

test('lineWidths holds comments to 100 columns and code to 120', () => {
  const words = (columns: number): string =>
    'ab '
      .repeat(columns)
      .slice(0, columns - 1)
      .concat('a');
  const faults = lineWidths([
    sourceFile('a/x.ts', [words(120), words(121), `// ${words(97)}`, `// ${words(98)}`].join('\n')),
  ]);
  assert.deepEqual(faults, ['a/x.ts:2: 121 columns, limit 120', 'a/x.ts:4: 101 columns, limit 100']);
});

test('lineWidths holds preformatted lines of comments to the width of code', () => {
  const diagram = (columns: number): string => `//   ${'a -> '.repeat(columns)}`.slice(0, columns - 1).concat('b');
  const faults = lineWidths([sourceFile('a/x.ts', [diagram(120), diagram(121)].join('\n'))]);
  assert.deepEqual(faults, ['a/x.ts:2: 121 columns, limit 120']);
});

for (const [what, line] of [
  ['one long word', `// https://${'a'.repeat(200)}`],
  ['a regular expression', `    /^${'a b'.repeat(100)}$/m,`],
  ['a regular expression under its name', `    says: /^${'a b'.repeat(100)}$/m,`],
  ['a directive of the linter', `// oxlint-disable-next-line rule -- ${'because '.repeat(20)}`],
] as const) {
  test(`lineWidths accepts a line of ${what}`, () => {
    assert.deepEqual(lineWidths([sourceFile('a/x.ts', line)]), []);
  });
}

test('lineWidths reports a comment between slashes', () => {
  const faults = lineWidths([sourceFile('a/x.ts', `// ${'a/b '.repeat(50)}a/`)]);
  assert.deepEqual(faults, ['a/x.ts:1: 205 columns, limit 100']);
});

test('lineWidths reports a regular expression inside a longer line', () => {
  const faults = lineWidths([sourceFile('a/x.ts', `  assert.match(text, /${'a b'.repeat(50)}/);`)]);
  assert.deepEqual(faults, ['a/x.ts:1: 175 columns, limit 120']);
});

test('testTitles reads titles in every kind of quotes', () => {
  const text = `test('it\\'s', () => {});\n  it("b", f);\ntest(\n  \`c \${d}\`,\n  f);\nconst test = 'no';\n`;
  assert.deepEqual(titlesOf(text), ["it\\'s", 'b', 'c ${d}']);
});

test('testTitles reports a title that is too long', () => {
  const faults = testTitles([sourceFile('a/test/x.test.ts', `test('${'a'.repeat(101)}', () => {});`)]);
  assert.match(faults.join('\n'), /^a\/test\/x\.test\.ts: title of 101 characters, limit 100: a+$/);
});

test('packageExports reports a relative import of another workspace, except in tests', () => {
  const inside = (path: string): string[] => packageExports([sourceFile(path, '', ['host/src/vm/driver.ts'])]);
  assert.deepEqual(inside('machine/src/doctor/checks.ts'), [
    'machine/src/doctor/checks.ts imports ./host/src/vm/driver.ts: import @berth/host/vm/driver.ts',
  ]);
  assert.deepEqual(inside('host/src/make-driver.ts'), []);
  assert.deepEqual(inside('e2e/crash/lifecycle.long.test.ts'), []);
});

test('unusedExports reports an exported name that no other file imports', () => {
  const module = sourceFile('os/src/turns.ts', 'export class Turns {}\nexport const LIMIT = 1;\n');
  const user = sourceFile('os/src/user.ts', "import { Turns as Line } from './os/src/turns.ts';\n", [
    'os/src/turns.ts',
  ]);
  assert.deepEqual(unusedExports([module, user]), ['os/src/turns.ts: no other file imports LIMIT']);
});

test('unusedExports leaves out modules that are imported as a whole, and those that the SDK publishes', () => {
  const module = sourceFile('os/src/turns.ts', 'export const LIMIT = 1;\n');
  const whole = sourceFile('os/src/user.ts', "import * as turns from './os/src/turns.ts';\n", ['os/src/turns.ts']);
  assert.deepEqual(unusedExports([module, whole, sourceFile('sdk/src/index.ts', 'export const LIMIT = 1;\n')]), []);
});

test('testTiers reports a fast test that boots a VM, and accepts long ones and stories', () => {
  const helper = sourceFile('e2e/files/app.ts', '', ['e2e/world/instance.ts']);
  const tests = ['e2e/files/app.test.ts', 'e2e/files/app.long.test.ts', 'e2e/files/app.story.test.ts'];
  const slow = SLOW.map((path) => sourceFile(path, ''));
  const files = [...slow, helper, ...tests.map((path) => sourceFile(path, '', ['e2e/files/app.ts']))];
  assert.deepEqual(testTiers(files), [
    'e2e/files/app.test.ts uses e2e/world/instance.ts: end its name with .long.test.ts or .story.test.ts',
  ]);
  const [fault = ''] = testTiers(files.slice(1));
  assert.match(fault, /^e2e\/world\/instance\.ts does not exist/);
});
