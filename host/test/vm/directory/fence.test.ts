import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { FENCE_KEPT_MS, FenceDirectory } from '../../../src/vm/directory/fence.ts';
import { vmIdOf } from '../lifecycle/lifecycle-fixture.ts';

const A = vmIdOf('a');

describe('the fences of destroyed VMs', () => {
  let root: string;
  let nowUnixMs: number;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'berth-fences-'));
    nowUnixMs = 1_000_000;
  });
  afterEach(async () => {
    await rm(root, { recursive: true });
  });

  async function open(): Promise<FenceDirectory> {
    const fences = new FenceDirectory(root, () => nowUnixMs);
    await fences.open();
    return fences;
  }

  it('are visible to the next daemon and only rise', async () => {
    const fences = await open();
    assert.equal(fences.epochOf(A), null);
    await fences.raise(A, 5);
    await fences.raise(A, 3);
    assert.equal(fences.epochOf(A), 5);
    assert.equal((await open()).epochOf(A), 5);
  });

  it('only rise when raised concurrently, in any order', async () => {
    const fences = await open();
    await Promise.all([5, 7, 6].map((epoch) => fences.raise(A, epoch)));
    assert.equal(fences.epochOf(A), 7);
    assert.equal((await open()).epochOf(A), 7);
  });

  it('survive a raise during the removal of expired ones', async () => {
    const ids = 'abcdefghjkmnpqrs'.split('').map(vmIdOf);
    const fences = await open();
    await Promise.all(ids.map((id) => fences.raise(id, 1)));
    nowUnixMs += FENCE_KEPT_MS + 1;
    await Promise.all([fences.raise(vmIdOf('z'), 1), ...ids.map((id) => fences.raise(id, 2))]);
    const next = await open();
    assert.deepEqual(
      ids.map((id) => [fences.epochOf(id), next.epochOf(id)]),
      ids.map(() => [2, 2]),
    );
  });

  it('expire after their time', async () => {
    await (await open()).raise(A, 5);
    nowUnixMs += FENCE_KEPT_MS;
    assert.equal((await open()).epochOf(A), 5);
    nowUnixMs += 1;
    const fences = await open();
    assert.equal(fences.epochOf(A), null);
    await fences.raise(vmIdOf('b'), 1);
    assert.deepEqual(await readdir(root), [`${vmIdOf('b')}.json`]);
  });

  it('report and remove an invalid file, and silently drop a truncated write', async () => {
    await writeFile(join(root, `${A}.json`), '{"epoch":');
    await writeFile(join(root, `.${A}.json.tmp`), '{"ep');
    const fences = new FenceDirectory(root);
    assert.deepEqual(await fences.open(), [`${A}.json`]);
    assert.deepEqual(await readdir(root), []);
  });
});
