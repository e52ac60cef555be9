// A Python client generated from openapi.json, as an example of generated clients.
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { publishedDocument } from '@berth/contract/document/openapi.ts';
import { realWorld } from './worlds.ts';

const DOCUMENT = join(import.meta.dirname, '../../openapi.json');
/** Debian's Python, which has the packages installed for the tests. */
const PYTHON = '/usr/bin/python3';
const CHECKER = '/usr/bin/mypy';
/** Bounds a program that hangs. */
const LONGEST_RUN_MS = 120_000;
const PROGRAMS = ['use.py', 'misuse.py'] as const;

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-python-'));
  const generator = createRequire(import.meta.url).resolve('@redocly/cli/bin/cli.js');
  const output = join(folder, 'client.ts');
  const made = spawnSync(
    process.execPath,
    [generator, 'generate-client', DOCUMENT, '--generator', 'python', '--output', output],
    {
      cwd: folder,
      encoding: 'utf8',
      // No update check and no telemetry.
      env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    },
  );
  assert.equal(made.status, 0, made.stdout + made.stderr);
  for (const name of PROGRAMS) await copyFile(join(import.meta.dirname, 'python', name), join(folder, name));
});
after(() => rm(folder, { recursive: true, force: true }));

test('the Python client types every request and response, and mypy checks programs against them', async (t) => {
  const signatures = (await readFile(join(folder, 'client.py'), 'utf8'))
    .split('\n')
    .filter((line) => /^ {4}(async )?def \w+\(.*, headers: /.test(line));
  assert.deepEqual(
    // The generator has no type for raw bytes.
    signatures.filter((line) => /body: Any|-> (Envelope\[)?Any/.test(line) && !/def (upload|download)_file/.test(line)),
    [],
  );
  const operations = Object.values(publishedDocument().paths).flatMap((path) =>
    Object.keys(path).filter((key) => key !== 'servers'),
  );
  // Each route has a plain and a detailed function, both also asynchronous.
  assert.equal(signatures.filter((line) => line.includes('headers: Optional')).length, operations.length * 4 + 2);

  // Ignore type errors in the generator's runtime.
  const options = [
    '--strict',
    '--follow-imports=silent',
    '--no-error-summary',
    '--cache-dir',
    join(folder, 'cache'),
    '--python-executable',
    PYTHON,
  ];
  const checked = spawnSync(CHECKER, [...options, ...PROGRAMS], { cwd: folder, encoding: 'utf8' });
  assert.equal(checked.stderr, '');
  const found = checked.stdout.split('\n').flatMap((line) => /^([\w.]+:\d+): error: /.exec(line)?.[1] ?? []);
  const wrong = (await readFile(join(folder, 'misuse.py'), 'utf8'))
    .split('\n')
    .flatMap((line, index) => (line.includes('# wrong: ') ? [`misuse.py:${index + 1}`] : []));
  assert.ok(wrong.length > 0);
  assert.deepEqual([...new Set(found)], wrong, checked.stdout);
  t.diagnostic((spawnSync(CHECKER, ['--version'], { encoding: 'utf8' }).stdout ?? '').trim());
});

test('a Python program creates, finds, uses and destroys a sandbox, and reads why a call is refused', async (t) => {
  const world = await realWorld();
  t.after(() => world.close());
  const operations = Object.values(publishedDocument().paths).flatMap((path) =>
    Object.entries(path).flatMap(([key, one]) =>
      key === 'servers' ? [] : [(one as { operationId: string }).operationId],
    ),
  );
  // Must not block the service in this process.
  const run = promisify(execFile)(
    PYTHON,
    ['use.py', world.url, world.apiKey, world.orgId, world.projectId, ...operations],
    {
      cwd: folder,
      timeout: LONGEST_RUN_MS,
      env: { PATH: process.env['PATH'] ?? '', PYTHONDONTWRITEBYTECODE: '1' },
    },
  );
  const { stdout } = await run;
  assert.deepEqual(JSON.parse(stdout), {
    me: true,
    created: ['from-python', { paid: true }, true, true],
    again: [true, 'true'],
    awake: true,
    listed: [true],
    exec: [0, 'from Python\n', false],
    file: 'ü\n',
    nested: [true, null, null],
    changed: true,
    refused: ['404 sandbox_not_found', '400 invalid_request', '401 unauthenticated'],
    asynchronous: ['3', '404 sandbox_not_found'],
    destroyed: true,
    missing: [],
  });
});
