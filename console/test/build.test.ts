// The cached build: made once, complete or absent, whoever builds at the same time or is killed.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, watch } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { ensureConsole } from '../build/build.ts';
import { builtConsole } from './built.ts';
import { deadlineOf } from '../../os/test/until.ts';

const PROGRAM = join(import.meta.dirname, 'build-process.ts');
let signal: AbortSignal;
let cacheFolder: string;

before(async () => {
  signal = AbortSignal.timeout(deadlineOf(240_000));
  cacheFolder = await mkdtemp(join(tmpdir(), 'berth-console-'));
});
after(() => rm(cacheFolder, { recursive: true }));

const start = (): ChildProcess =>
  spawn(process.execPath, [PROGRAM, cacheFolder], { stdio: ['ignore', 'pipe', 'inherit'] });
const consoles = async (): Promise<string[]> =>
  (await readdir(cacheFolder)).filter((name) => /^console-[0-9a-f]{24}$/.test(name));

test('a build that is killed leaves no console, and two builders then make one', async () => {
  const killed = start();
  const watcher = watch(cacheFolder);
  while (!existsSync(join(cacheFolder, 'console-partial'))) await once(watcher, 'change', { signal });
  watcher.close();
  killed.kill('SIGKILL');
  await once(killed, 'exit');
  assert.deepEqual(await consoles(), []);

  const both = [start(), start()];
  const printed = await Promise.all(both.map(async ({ stdout }) => await text(stdout ?? process.stdin)));
  const [name = ''] = await consoles();
  assert.deepEqual(printed, [`${join(cacheFolder, name)}\n`, `${join(cacheFolder, name)}\n`]);
  assert.deepEqual((await readdir(cacheFolder)).toSorted(), [name, 'console.lock'].toSorted());
  assert.equal(name, basename(builtConsole()));
});

test('a second call finds the build, and changes nothing', async () => {
  const first = await ensureConsole({ cacheFolder, signal });
  const { mtimeMs, ino } = await stat(first);
  assert.equal(await ensureConsole({ cacheFolder, signal }), first);
  const again = await stat(first);
  assert.deepEqual({ mtimeMs: again.mtimeMs, ino: again.ino }, { mtimeMs, ino });
});

test('every asset is readable for all, named by its hash, and compressed', async () => {
  const folder = await ensureConsole({ cacheFolder, signal });
  const assets = await readdir(join(folder, 'assets'));
  const plain = assets.filter((name) => !/\.(?:br|gz)$/.test(name));
  assert.ok(plain.length > 2);
  for (const name of plain) {
    assert.match(name, /-[\w-]{8}\.(?:js|css|svg)$/);
    const file = join(folder, 'assets', name);
    const content = await readFile(file);
    assert.deepEqual(brotliDecompressSync(await readFile(`${file}.br`)), content);
    assert.deepEqual(gunzipSync(await readFile(`${file}.gz`)), content);
    assert.equal((await stat(file)).mode & 0o777, 0o644);
  }
  assert.equal((await stat(folder)).mode & 0o777, 0o755);
});

test('the licences of the bundled packages are beside the page', async () => {
  const licences = await readFile(join(builtConsole(), 'LICENSES.md'), 'utf8');
  for (const name of ['react', 'react-dom', '@tanstack/react-query'])
    assert.match(licences, new RegExp(`## ${name}\\b`));
});
