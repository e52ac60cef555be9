import assert from 'node:assert/strict';
import { access, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { PoolDirectory } from '../../src/pool/directory.ts';

const ID = `pool_${'a'.repeat(20)}`;

describe('the folder of the pool', () => {
  let root: string;
  let directory: PoolDirectory;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'berth-pool-'));
    directory = new PoolDirectory(join(root, 'pool'));
    await directory.open();
  });
  afterEach(async () => rm(root, { recursive: true }));

  it('reads back the record of a VM', async () => {
    await directory.makeFolders(ID);
    await directory.write({ version: 1, id: ID, driverState: { slot: 3 } });
    assert.deepEqual(await directory.read(ID), { version: 1, id: ID, driverState: { slot: 3 } });
    assert.deepEqual(await directory.list(), [ID]);
  });

  it('treats a missing, truncated or malformed record as absent', async () => {
    await directory.makeFolders(ID);
    assert.equal(await directory.read(ID), null);
    for (const text of ['', '{"version":', '{"version":2}']) {
      await writeFile(join(root, 'pool', ID, 'record.json'), text);
      assert.equal(await directory.read(ID), null);
    }
  });

  it('leaves foreign files alone', async () => {
    await mkdir(join(root, 'pool', 'lost+found'));
    await writeFile(join(root, 'pool', `pool_${'b'.repeat(20)}`), 'no folder');
    assert.deepEqual(await directory.list(), []);
  });

  it("moves a pool VM's folder to a VM, replacing an empty one, and removes the rest", async () => {
    await directory.makeFolders(ID);
    await writeFile(join(directory.driverFolder(ID), 'disk'), 'content');
    const to = join(root, 'vm');
    await mkdir(to);
    await directory.move(ID, to);
    await directory.remove(ID);
    assert.equal(await readFile(join(to, 'disk'), 'utf8'), 'content');
    assert.deepEqual(await readdir(join(root, 'pool')), []);
  });

  it('replaces no folder with content', async () => {
    await directory.makeFolders(ID);
    const to = join(root, 'vm');
    await mkdir(to);
    await writeFile(join(to, 'disk'), 'of another');
    await assert.rejects(directory.move(ID, to), { code: 'ENOTEMPTY' });
    await access(directory.driverFolder(ID));
  });
});
