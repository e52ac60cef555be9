import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { tryLock, waitForLock } from '../src/file-lock.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-lock-'));
});
after(() => rm(folder, { recursive: true, force: true }));

test('a lock is given once until it is released', async () => {
  const path = join(folder, 'once');
  const first = await tryLock(path);
  assert.ok(first !== null);
  assert.equal(await tryLock(path), null);
  await first.release();
  const second = await tryLock(path);
  assert.ok(second !== null);
  await second.release();
});

test('a lock is free again when its holder is killed', async () => {
  const path = join(folder, 'killed');
  const script = `
    import { tryLock } from ${JSON.stringify(new URL('../src/file-lock.ts', import.meta.url).href)};
    await tryLock(${JSON.stringify(path)});
    process.stdout.write('locked');
    setInterval(() => {}, 1000);`;
  const holder = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(holder.stdout, 'data');
  assert.equal(await tryLock(path), null);
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  const lock = await tryLock(path);
  assert.ok(lock !== null);
  await lock.release();
});

test('who waits gets the lock when it is released, and is told that it waits', async () => {
  const path = join(folder, 'waiting');
  const first = await tryLock(path);
  assert.ok(first !== null);
  let told = 0;
  const order: string[] = [];
  const second = waitForLock(
    path,
    () => {
      told += 1;
      order.push('released');
      void first.release();
    },
    AbortSignal.timeout(20_000),
  );
  const lock = await second;
  order.push('taken');
  assert.deepEqual([told, order], [1, ['released', 'taken']]);
  await lock.release();
});

test('waiting ends when it is no longer wanted', async () => {
  const path = join(folder, 'aborted');
  const first = await tryLock(path);
  const wanted = new AbortController();
  await assert.rejects(
    waitForLock(path, () => wanted.abort(), wanted.signal),
    { name: 'AbortError' },
  );
  await first?.release();
});
