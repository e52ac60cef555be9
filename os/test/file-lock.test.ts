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

test('a waiter gets the lock on release, and is notified that it waits', async () => {
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

test('a cancelled wait ends', async () => {
  const path = join(folder, 'aborted');
  const first = await tryLock(path);
  const wanted = new AbortController();
  await assert.rejects(
    waitForLock(path, () => wanted.abort(), wanted.signal),
    { name: 'AbortError' },
  );
  await first?.release();
});

test('a lock has one holder at a time and passes to the waiter on release', async () => {
  const path = join(folder, 'passed-on');
  const signal = AbortSignal.timeout(30_000);
  const order: string[] = [];
  const first = await waitForLock(path, () => assert.fail('nobody holds it yet'), signal);
  const waits = Promise.withResolvers<void>();
  const second = waitForLock(path, waits.resolve, signal).then((lock) => {
    order.push('second has it');
    return lock;
  });
  await waits.promise;
  order.push('first frees it');
  await first.release();
  await (await second).release();
  assert.deepEqual(order, ['first frees it', 'second has it']);
});

test('the lock of a killed holder passes to the waiter', async () => {
  const path = join(folder, 'inherited');
  const script = `
    import { waitForLock } from ${JSON.stringify(new URL('../src/file-lock.ts', import.meta.url).href)};
    await waitForLock(${JSON.stringify(path)}, () => undefined, new AbortController().signal);
    console.log('held');
    setInterval(() => undefined, 1000);`;
  const holder = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(holder.stdout, 'data');
  const waits = Promise.withResolvers<void>();
  const mine = waitForLock(path, waits.resolve, AbortSignal.timeout(30_000));
  await waits.promise;
  holder.kill('SIGKILL');
  await (await mine).release();
});

test('an aborted wait rejects with the reason of the abort', async () => {
  const path = join(folder, 'reason');
  const lock = await waitForLock(path, () => undefined, AbortSignal.timeout(30_000));
  const stop = new AbortController();
  await assert.rejects(
    waitForLock(path, () => stop.abort(new Error('enough')), stop.signal),
    /enough/,
  );
  await lock.release();
});
