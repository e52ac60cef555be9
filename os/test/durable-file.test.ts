import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { writeDurably } from '../src/durable-file.ts';

describe('a small file that is written durably', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-durable-'));
  });
  afterEach(async () => {
    await rm(folder, { recursive: true });
  });

  it('has the whole content of the last of many callers, and no file beside it', async () => {
    const path = join(folder, 'record.json');
    const contents = Array.from({ length: 50 }, (_, index) => `${index} `.repeat(10_000 - index * 100));
    await Promise.all(contents.map((content) => writeDurably(path, content)));
    assert.equal(await readFile(path, 'utf8'), contents.at(-1));
    assert.deepEqual(await readdir(folder), ['record.json']);
  });

  it('is written even after failed writes', async () => {
    const path = join(folder, 'sub', 'record.json');
    const failed = await Promise.allSettled([writeDurably(path, 'first'), writeDurably(path, 'second')]);
    assert.deepEqual(
      failed.map((one) => one.status === 'rejected' && (one.reason as NodeJS.ErrnoException).code),
      ['ENOENT', 'ENOENT'],
    );
    await mkdir(join(folder, 'sub'));
    await writeDurably(path, 'third');
    assert.equal(await readFile(path, 'utf8'), 'third');
  });
});
