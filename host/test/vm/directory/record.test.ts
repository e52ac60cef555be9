import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { DataKeys } from '../../../src/vm/directory/data-keys.ts';
import { VmDirectory } from '../../../src/vm/directory/record.ts';
import { newRecord } from '../../../src/vm/owned/owned-vm.ts';
import { SMALL, vmIdOf } from '../lifecycle/lifecycle-fixture.ts';

const A = vmIdOf('a');

describe('the record of a VM on disk', () => {
  let root: string;
  let directory: VmDirectory;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'berth-records-'));
    directory = new VmDirectory(join(root, 'vms'), new DataKeys(join(root, 'keys')));
    await directory.open();
    await directory.makeFolders(A);
  });
  afterEach(async () => {
    await rm(root, { recursive: true });
  });

  it('reads back the last write', async () => {
    const record = newRecord(A, 1, SMALL);
    await directory.write(record);
    await directory.write({ ...record, epoch: 2, driverState: { slot: 3, nested: { uid: 200_003 } } });
    assert.deepEqual(await directory.read(A), {
      kind: 'record',
      record: { ...record, epoch: 2, driverState: { slot: 3, nested: { uid: 200_003 } } },
    });
  });

  it('leaves no temporary file, and replaces one that a crash left', async () => {
    await writeFile(join(root, 'vms', A, '.record.json.tmp'), 'half a rec');
    await directory.write(newRecord(A, 1, SMALL));
    assert.deepEqual((await readdir(join(root, 'vms', A))).sort(), ['record.json', 'vm']);
  });

  it('is private, and so are its folders', async () => {
    await directory.write(newRecord(A, 1, SMALL));
    await directory.writeSecret(A, 'secret');
    const modes = await Promise.all(
      ['', 'vm', 'record.json', 'guest-secret'].map(
        async (name) => (await stat(join(root, 'vms', A, name))).mode & 0o777,
      ),
    );
    assert.deepEqual(modes, [0o700, 0o700, 0o600, 0o600]);
  });

  for (const [what, text] of [
    ['an empty file', ''],
    ['half a record', '{"version":1,'],
    ['JSON of another form', '[]'],
    ['a record of another VM', JSON.stringify(newRecord(vmIdOf('b'), 1, SMALL))],
    ['a record of a later version', JSON.stringify({ ...newRecord(A, 1, SMALL), version: 2 })],
  ] as const) {
    it(`distinguishes ${what} from a record`, async () => {
      await writeFile(join(root, 'vms', A, 'record.json'), text);
      assert.equal((await directory.read(A)).kind, 'corrupt');
    });
  }

  it('reads a record of a daemon that knew no sleep', async () => {
    const { version, id, epoch, spec, status, reason, everRan, freed, driverState } = newRecord(A, 1, SMALL);
    const early = { version, id, epoch, spec, status, reason, everRan, freed, driverState };
    await writeFile(join(root, 'vms', A, 'record.json'), JSON.stringify(early));
    assert.deepEqual(await directory.read(A), { kind: 'record', record: newRecord(A, 1, SMALL) });
  });

  it('empties and keeps private the folder of a snapshot', async () => {
    await directory.makeSnapshotFolder(A);
    await writeFile(join(directory.snapshotFolder(A), 'manifest.json'), '{}');
    await directory.makeSnapshotFolder(A);
    assert.deepEqual(await readdir(directory.snapshotFolder(A)), []);
    assert.equal((await stat(directory.snapshotFolder(A))).mode & 0o777, 0o700);
    await directory.removeSnapshot(A);
    await directory.removeSnapshot(A);
    assert.deepEqual(await readdir(join(root, 'vms', A)), ['vm']);
  });

  it('replaces the secret in force by the next one, once', async () => {
    await directory.writeSecret(A, 'former');
    await directory.writeNextSecret(A, 'next');
    assert.deepEqual([await directory.readSecret(A), await directory.readNextSecret(A)], ['former', 'next']);
    await directory.promoteNextSecret(A);
    await directory.promoteNextSecret(A);
    assert.deepEqual([await directory.readSecret(A), await directory.readNextSecret(A)], ['next', null]);
  });

  it('detects a folder without a record', async () => {
    assert.deepEqual(await directory.read(A), { kind: 'none' });
  });

  it('lists only folders named like a VM, and removes one completely, even twice', async () => {
    await mkdir(join(root, 'vms', 'lost+found'));
    await writeFile(join(root, 'vms', vmIdOf('b')), 'a file is no VM');
    await directory.write(newRecord(A, 1, SMALL));
    await writeFile(join(directory.driverFolder(A), 'disk.qcow2'), 'x');
    assert.deepEqual(await directory.list(), [A]);
    await directory.remove(A);
    await directory.remove(A);
    assert.deepEqual(await directory.list(), []);
  });
});
