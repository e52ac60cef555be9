// The file lock: one holder at a time, across processes, and never longer than its holder lives.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, mkdir, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, mock, test } from 'node:test';
import { takeLock } from '../../src/service/file-lock.ts';

const MODULE = join(import.meta.dirname, '../../src/service/file-lock.ts');
const MACHINE = hostname().replaceAll(/[^A-Za-z0-9.-]/g, '_');
/** Long enough for many polls of the lock. */
const A_WHILE_MS = 300;

let folder: string;
let path: string;
let count = 0;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-lock-'));
});
after(async () => await rm(folder, { recursive: true }));
beforeEach(() => {
  count += 1;
  path = join(folder, `${count}.lock`);
});

async function heldBy(entry: string, agoSeconds = 0): Promise<void> {
  await mkdir(path, { recursive: true });
  await writeFile(join(path, entry), '');
  const at = new Date(Date.now() - agoSeconds * 1_000);
  await utimes(join(path, entry), at, at);
}
const stillWaits = async (): Promise<void> =>
  await assert.rejects(takeLock(path, AbortSignal.timeout(A_WHILE_MS)), { name: 'AbortError' });

test('concurrent processes that count in a locked file lose no count', async () => {
  const file = join(folder, 'count');
  await writeFile(file, '0');
  const program = `
    const { takeLock } = await import(${JSON.stringify(MODULE)});
    const { readFileSync, writeFileSync } = await import('node:fs');
    for (let n = 0; n < 40; n += 1) {
      const lock = await takeLock(${JSON.stringify(path)});
      const before = Number(readFileSync(${JSON.stringify(file)}, 'utf8'));
      await new Promise(setImmediate);
      writeFileSync(${JSON.stringify(file)}, String(before + 1));
      await lock.release();
    }`;
  const children = Array.from({ length: 4 }, () =>
    spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: 'inherit' }),
  );
  for (const [code] of await Promise.all(children.map(async (child) => (await once(child, 'close')) as [number])))
    assert.equal(code, 0);
  assert.equal(await readFile(file, 'utf8'), '160');
  assert.deepEqual((await readdir(folder)).sort(), ['count'], 'nothing is left of it');
  await rm(file);
});

test('a waiter gets the lock on release', async () => {
  const first = await takeLock(path);
  await stillWaits();
  const second = takeLock(path);
  await first.release();
  const lock = await second;
  assert.equal(await lock.isHeld(), true);
  await lock.release();
  assert.deepEqual(await readdir(folder), []);
});

test('a lock of a living process or of another host is waited for', async () => {
  for (const entry of [`${MACHINE}~${process.pid}~abc`, 'another-machine~1~abc']) {
    await heldBy(entry);
    await stillWaits();
    assert.deepEqual(await readdir(path), [entry]);
    await rm(path, { recursive: true });
  }
});

test('a lock of a dead process is not waited for', async () => {
  const child = spawn(process.execPath, ['-e', '']);
  await once(child, 'close');
  await heldBy(`${MACHINE}~${child.pid}~abc`);
  await (await takeLock(path)).release();
});

test('a lock held beyond its time limit is lost, and its holder knows', async () => {
  const first = await takeLock(path);
  const [entry = ''] = await readdir(path);
  await heldBy(entry, 60);
  const second = await takeLock(path);
  assert.deepEqual([await first.isHeld(), await second.isHeld()], [false, true]);
  await first.release();
  assert.equal(await second.isHeld(), true, "the first one's release is not the second one's");
  await second.release();
});

test('a wait is limited to 40 s', async () => {
  await heldBy('another-machine~1~abc', -3_600);
  mock.timers.enable({ apis: ['Date'], now: Date.now() });
  try {
    const waiting = takeLock(path);
    mock.timers.setTime(Date.now() + 41_000);
    await assert.rejects(waiting, /^OperatorFailure: cannot lock .*\.lock: held by another berth process for 40 s$/);
  } finally {
    mock.timers.reset();
  }
  await rm(path, { recursive: true });
});
