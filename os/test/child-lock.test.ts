import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { takeLock } from '../src/child-lock.ts';

describe('the lock of a cache folder', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-lock-'));
  });
  after(() => rm(folder, { recursive: true }));

  it('is held by one at a time, and goes to who waits when it is freed', async () => {
    const path = join(folder, 'a');
    const signal = AbortSignal.timeout(30_000);
    const order: string[] = [];
    const first = await takeLock(path, () => assert.fail('nobody holds it yet'), signal);
    const waits = Promise.withResolvers<void>();
    const second = takeLock(path, waits.resolve, signal).then((release) => {
      order.push('second has it');
      return release;
    });
    await waits.promise;
    order.push('first frees it');
    await first();
    await (
      await second
    )();
    assert.deepEqual(order, ['first frees it', 'second has it']);
  });

  it('is free again when its holder is killed', async () => {
    const path = join(folder, 'b');
    const module = join(import.meta.dirname, '../src/child-lock.ts');
    const script = `import { takeLock } from ${JSON.stringify(module)};
      await takeLock(${JSON.stringify(path)}, () => undefined, new AbortController().signal);
      console.log('held');
      setInterval(() => undefined, 1000);`;
    const holder = spawn(process.execPath, ['--input-type=module', '--eval', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(holder.stdout, 'data');
    const waits = Promise.withResolvers<void>();
    const mine = takeLock(path, waits.resolve, AbortSignal.timeout(30_000));
    await waits.promise;
    holder.kill('SIGKILL');
    await (
      await mine
    )();
  });

  it('is given up when the wait is aborted', async () => {
    const path = join(folder, 'c');
    const release = await takeLock(path, () => undefined, AbortSignal.timeout(30_000));
    const stop = new AbortController();
    await assert.rejects(
      takeLock(path, () => stop.abort(new Error('enough')), stop.signal),
      /enough/,
    );
    await release();
  });
});
