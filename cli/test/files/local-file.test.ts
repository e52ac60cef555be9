// Local files that are uploaded in parts.
import assert from 'node:assert/strict';
import { open, mkdtemp, rm, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { LocalFile } from '../../src/files/local-file.ts';

const SIZE = 5 * 2 ** 30;

test('a file of 5 GiB has its size, and its parts have their bytes', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-local-file-'));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, 'sparse');
  const file = await open(path, 'wx');
  await file.truncate(SIZE);
  for (const at of [2 ** 31 - 2, 2 ** 32 - 2, SIZE - 4]) await file.write('part', at);
  await file.close();

  const local = await LocalFile.open(path);
  t.after(() => local.close());
  assert.equal(local.size, SIZE);
  for (const at of [2 ** 31 - 2, 2 ** 32 - 2, SIZE - 4])
    assert.equal(await new Response(local.slice(at, at + 4)).text(), 'part', String(at));
  let warnings = 0;
  const warned = (): void => void (warnings += 1);
  process.on('warning', warned);
  t.after(() => process.off('warning', warned));
  for (let at = 0; at < 20; at += 1) await new Response(local.slice(at, at + 1)).text();
  assert.equal(warnings, 0);
  assert.equal(local.slice(1, SIZE).size, SIZE - 1);
  await truncate(path, 100);
  assert.throws(() => local.slice(50, 200), /sparse changed while it was copied/);
});
