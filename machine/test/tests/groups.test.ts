// Test files that share a process, on files of the test's own.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { groupFiles } from '../../src/tests/groups.ts';
import type { FileResult } from '../../src/tests/file-results.ts';
import { runFiles } from '../../src/tests/run-files.ts';

const FILES = {
  'hooks.test.ts':
    "let n = 0; beforeEach(() => { n += 1; }); test('a hook runs once', (t) => t.assert.equal(n, 1));" +
    "describe('inside', () => { test('twice', (t) => t.assert.equal(n, 2)); }); test.skip('is skipped');",
  'plain.test.ts': "test('passes', () => {});",
  'fails.test.ts': "test('fails', () => { throw new Error('on purpose'); }); test('passes', () => {});",
  'broken.test.ts': "throw new Error('cannot be loaded');",
  'ends.test.ts': "test('ends', () => process.exit(3));",
};

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-test-groups-'));
  for (const [name, text] of Object.entries(FILES))
    await writeFile(join(folder, name), `import { beforeEach, describe, test } from 'node:test';\n${text}\n`);
});
after(() => rm(folder, { recursive: true, force: true }));

const pathOf = (name: string): string => join(folder, name);

async function runTogether(first: string, ...more: string[]): Promise<FileResult[]> {
  // Node's runner refuses to run below itself.
  const context = process.env['NODE_TEST_CONTEXT'];
  delete process.env['NODE_TEST_CONTEXT'];
  try {
    return await runFiles([pathOf(first), ...more.map(pathOf)], {
      timeoutMs: 60_000,
      name: undefined,
      signal: new AbortController().signal,
      accounts: undefined,
      environment: undefined,
    });
  } finally {
    process.env['NODE_TEST_CONTEXT'] = context;
  }
}

const namesOf = ({ events }: FileResult): string[] =>
  events.flatMap((event) =>
    event.type === 'test:pass' || event.type === 'test:fail' ? `${event.data.nesting} ${event.data.name}` : [],
  );

const causesOf = (result: FileResult | undefined): string =>
  (result?.events ?? [])
    .map((event) => (event.type === 'test:fail' ? String(event.data.details.error.cause) : ''))
    .join('\n');

test('files of one process have their own hooks, results and counts', async () => {
  const [hooks, plain, fails] = await runTogether('hooks.test.ts', 'plain.test.ts', 'fails.test.ts');
  assert.ok(hooks && plain && fails);
  assert.deepEqual([hooks.success, plain.success, fails.success], [true, true, false]);
  assert.deepEqual(namesOf(hooks), ['0 a hook runs once', '1 twice', '0 inside', '0 is skipped']);
  assert.deepEqual(namesOf(plain), ['0 passes']);
  const { tests, suites, passed, skipped } = hooks.counts;
  assert.deepEqual([tests, suites, passed, skipped], [3, 1, 2, 1]);
  assert.deepEqual([fails.counts.tests, fails.counts.passed], [2, 1]);
  assert.ok(hooks.cost.seconds > 0);
});

test('a file that cannot be loaded fails alone, with its error', async () => {
  const [broken, plain] = await runTogether('broken.test.ts', 'plain.test.ts');
  assert.deepEqual([broken?.success, plain?.success], [false, true]);
  assert.equal(broken?.counts.tests, 1);
  assert.match(causesOf(broken), /cannot be loaded/);
});

test('a process that ends early fails the files that had not ended', async () => {
  const results = await runTogether('plain.test.ts', 'ends.test.ts', 'hooks.test.ts');
  assert.deepEqual(
    results.map(({ success, counts }) => [success, counts.passed]),
    [
      [false, 0],
      [false, 0],
      [false, 0],
    ],
  );
  assert.match(causesOf(results[1]), /exit code 3/);
});

test('short files of a workspace share a process; long and unmeasured ones do not', () => {
  const costs = new Map(
    Object.entries({ 'plain.test.ts': 1, 'hooks.test.ts': 14, 'fails.test.ts': 16 }).map(([name, seconds]) => [
      pathOf(name),
      { seconds, cpuSeconds: null },
    ]),
  );
  const files = [...costs.keys(), pathOf('ends.test.ts')];
  assert.deepEqual(
    groupFiles(files, costs).map((group) => group.map((file) => file.slice(folder.length + 1))),
    [['plain.test.ts', 'hooks.test.ts'], ['fails.test.ts'], ['ends.test.ts']],
  );
});
