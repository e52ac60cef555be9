import assert from 'node:assert/strict';
import { mkdtemp, open, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { sparseSha256 } from '../src/sparse-digest.ts';
import { deadlineOf } from '../../os/test/until.ts';

const GIB = 2 ** 30;

describe('the digest of a sparse file', () => {
  let folder: string;
  let signal: AbortSignal;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-sparse-'));
  });
  beforeEach(() => {
    signal = AbortSignal.timeout(deadlineOf(60_000));
  });
  after(() => rm(folder, { recursive: true }));

  async function sparse(
    name: string,
    sizeBytes: number,
    parts: [position: number, content: Buffer][],
  ): Promise<string> {
    const path = join(folder, name);
    await writeFile(path, '');
    await truncate(path, sizeBytes);
    const handle = await open(path, 'r+');
    for (const [position, content] of parts) await handle.write(content, 0, content.length, position);
    await handle.close();
    return path;
  }

  const parts: [number, Buffer][] = [
    [100, Buffer.from('start')],
    [3 * GIB + 4000, Buffer.alloc(300, 'm')],
    [10 * GIB - 5, Buffer.from('end!!')],
  ];

  it('reads ten gigabytes of holes without filling them', async () => {
    const path = await sparse('big', 10 * GIB, parts);
    assert.match(await sparseSha256(path, signal), /^[0-9a-f]{64}$/);
    assert.ok((await stat(path)).blocks * 512 < 1e6);
  });

  it('does not depend on which zeros are holes of the file', async () => {
    const holes = await sparse('holes', 5_000_000, [[1_000_000, Buffer.from('x')]]);
    const dense = await sparse('dense', 5_000_000, [
      [0, Buffer.alloc(5_000_000)],
      [1_000_000, Buffer.from('x')],
    ]);
    assert.ok((await stat(dense)).blocks > (await stat(holes)).blocks);
    assert.equal(await sparseSha256(dense, signal), await sparseSha256(holes, signal));
  });

  it('changes with one bit in the data, one byte in a hole, the place of data and the size', async () => {
    const digests = await Promise.all(
      [
        await sparse('a', 10 * GIB, parts),
        await sparse('b', 10 * GIB, [[100, Buffer.from('stars')], ...parts.slice(1)]),
        await sparse('c', 10 * GIB, [...parts, [7 * GIB, Buffer.from([1])]]),
        await sparse('d', 10 * GIB, [[100 + 4096, Buffer.from('start')], ...parts.slice(1)]),
        await sparse('e', 10 * GIB + 4096, parts),
      ].map((path) => sparseSha256(path, signal)),
    );
    assert.equal(new Set(digests).size, digests.length);
  });

  it('accepts a file that is one hole and an empty one', async () => {
    const hole = await sparseSha256(await sparse('hole', GIB, []), signal);
    assert.notEqual(hole, await sparseSha256(await sparse('empty', 0, []), signal));
  });

  it('accepts a file of many ranges', async () => {
    const many = Array.from({ length: 500 }, (_, index): [number, Buffer] => [
      index * 65_536 + (index % 4096),
      Buffer.from(`part ${index}`),
    ]);
    const one = await sparseSha256(await sparse('many', GIB, many), signal);
    assert.equal(await sparseSha256(await sparse('again', GIB, many), signal), one);
    assert.notEqual(await sparseSha256(await sparse('fewer', GIB, many.slice(0, 499)), signal), one);
  });

  it('fails for a missing file', async () => {
    await assert.rejects(sparseSha256(join(folder, 'missing'), signal), { code: 'ENOENT' });
  });
});
