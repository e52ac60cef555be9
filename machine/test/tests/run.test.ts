// The program that runs test files, on files of the test's own.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';

const RUNNER = join(import.meta.dirname, '../../src/tests/run.ts');
const FILES = {
  'passes.test.ts': "test('one passes', () => {}); test('another passes', () => {});",
  'fails.test.ts': "test('one fails', () => { throw new Error('on purpose'); }); test.skip('one is skipped');",
  'ends.test.ts': "console.error('its last words'); process.exit(3);",
  'stays.test.ts': "process.on('SIGTERM', () => {}); test('it passes', () => {}); setInterval(() => {}, 1_000);",
  'unstable.test.ts':
    "import { existsSync, writeFileSync } from 'node:fs';" +
    "test('it passes the second time', () => { const before = existsSync('ran'); writeFileSync('ran', '');" +
    "if (!before) throw new Error('not yet'); });",
  'served.test.ts': "test('it is served', (t) => t.assert.equal(process.env.BERTH_TEST_SERVED, 'yes'));",
  'serves.ts':
    "console.log(JSON.stringify({ BERTH_TEST_SERVED: 'yes' }));" +
    "process.stdin.resume().on('end', () => console.error('stopped'));",
};

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-test-runner-'));
  for (const [name, text] of Object.entries(FILES))
    await writeFile(join(folder, name), `import { test } from 'node:test';\n${text}\n`);
});
after(() => rm(folder, { recursive: true, force: true }));

function run(...args: string[]): Promise<{ exitCode: number; stdout: string; stderr: string }> {
  // Node's runner refuses to run below itself.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  return new Promise((resolve) => {
    execFile(process.execPath, [RUNNER, ...args], { cwd: folder, env }, (error, stdout, stderr) =>
      resolve({ exitCode: Number(error?.code ?? 0), stdout, stderr }),
    );
  });
}

test('a run of passing files exits with 0 and ends with the slowest files, then the counts', async () => {
  const { exitCode, stdout, stderr } = await run('passes.test.ts');
  assert.equal(exitCode, 0, stdout);
  assert.match(
    stdout,
    /^✔ one passes .*\n✔ another passes .*\n\nSlowest files:\n +[\d.]+ s {2}passes\.test\.ts\nℹ tests 2\n/,
  );
  assert.match(stdout, /ℹ pass 2\nℹ fail 0\nℹ cancelled 0\nℹ skipped 0\nℹ todo 0\nℹ duration_ms [\d.]+\n$/);
  assert.match(stderr, /^» 1\/1 passes\.test\.ts: ok, [\d.]+ s$/m);
});

test('a run with a failing test or a crashing file exits with 1 and quotes the failure', async () => {
  const { exitCode, stdout, stderr } = await run('passes.test.ts', 'fails.test.ts', 'ends.test.ts');
  assert.equal(exitCode, 1, stdout);
  assert.match(stdout, /failing tests:[^]*on purpose[^]*Slowest files:/);
  assert.match(stdout, /failing tests:[^]*ended with exit code 3, and wrote last:\s+its last words/);
  assert.match(stdout, /ℹ tests 5\nℹ suites 0\nℹ pass 2\nℹ fail 2\nℹ cancelled 0\nℹ skipped 1\n/);
  assert.match(stderr, /fails\.test\.ts: FAILED[^]*/);
  assert.match(stderr, /ends\.test\.ts: FAILED/);
});

test('a file that does not end is killed at its deadline, and the failure names what was open', async () => {
  const { exitCode, stdout, stderr } = await run('--timeout=0.5', 'stays.test.ts', 'passes.test.ts');
  assert.equal(exitCode, 1, stdout);
  assert.match(stdout, /failing tests:[^]*signal SIGKILL[^]*did not end within 1 s; active: [^]*Timeout/);
  assert.match(stderr, /passes\.test\.ts: ok/);
});

test('a title pattern selects tests', async () => {
  const { stdout } = await run('--name=another', 'passes.test.ts');
  assert.match(stdout, /^✔ another passes/);
  assert.match(stdout, /ℹ tests 1\n/);
});

test('a shared program serves from before the first file until after the last', async () => {
  const { exitCode, stdout, stderr } = await run('--serve=serves.ts', 'served.test.ts');
  assert.equal(exitCode, 0, stdout);
  assert.match(stderr, /served\.test\.ts: ok[^]*\nstopped\n/);
  const refused = await run('--serve=ends.test.ts', 'passes.test.ts');
  assert.equal(refused.exitCode, 1);
  assert.match(refused.stderr, /ends\.test\.ts exited with 3 before it served/);
});

test('a file that fails once and passes alone is listed as unstable with its error', async () => {
  const { exitCode, stdout, stderr } = await run('unstable.test.ts', 'passes.test.ts');
  assert.equal(exitCode, 0, stdout);
  assert.match(stderr, /unstable\.test\.ts: FAILED[^]*» alone unstable\.test\.ts: ok/);
  const list = /\nUNSTABLE: 1 of 2 files [^;]*; list in (?<path>.*)\n(?<errors>[^]*?)\nℹ tests 3\n/.exec(
    stdout,
  )?.groups;
  assert.match(
    list?.['errors'] ?? '',
    /^unstable\.test\.ts\n {2}it passes the second time\n {2}Error: not yet\n {4,}at /,
  );
  const path = list?.['path'] ?? '';
  assert.match(await readFile(path, 'utf8'), /Error: not yet/);
  await rm(dirname(path), { recursive: true });
});

test('more unstable files than the limit fail the run', async () => {
  const files = Array.from({ length: 6 }, (_, index) => `unstable-${index}.test.ts`);
  for (const file of files) {
    const text = FILES['unstable.test.ts'].replaceAll("'ran'", `'ran-${file}'`);
    await writeFile(join(folder, file), `import { test } from 'node:test';\n${text}\n`);
  }
  const { exitCode, stdout } = await run(...files);
  assert.match(stdout, /UNSTABLE: 6 of 6 files /);
  await rm(dirname(/list in (?<path>.*)/.exec(stdout)?.groups?.['path'] ?? ''), { recursive: true });
  assert.equal(exitCode, 1);
});
