import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { makeSshHostKey } from '../../../src/guest/ssh-host-key.ts';
import { DataKeys } from '../../../src/vm/directory/data-keys.ts';
import { VmDirectory } from '../../../src/vm/directory/record.ts';
import { DataKeyError } from '../../../src/vm/directory/secret-folders.ts';
import { vmIdOf } from '../lifecycle/lifecycle-fixture.ts';

const [A, B] = [vmIdOf('a'), vmIdOf('b')];
const NAMES = { machineId: '0123456789abcdef0123456789abcdef', sshHostKey: makeSshHostKey('root@berth') };
const newKey = (): string => randomBytes(32).toString('base64url');

describe('the secrets of a VM on disk', () => {
  let root: string;
  let keys: DataKeys;
  let directory: VmDirectory;
  beforeEach(async () => {
    root = await mkdtemp('/dev/shm/berth-secrets-');
    keys = await DataKeys.open('abcdefgh', [root]);
    directory = new VmDirectory(join(root, 'vms'), keys);
    await directory.open();
    for (const id of [A, B]) await directory.makeFolders(id);
  });
  afterEach(async () => {
    await rm(root, { recursive: true });
  });

  const fileOf = (id: string, name: string): string => join(root, 'vms', id, name);

  async function writeAll(id = A): Promise<void> {
    await directory.writeSecret(id, 'former');
    await directory.writeNextSecret(id, 'next');
    await directory.writeNames(id, NAMES);
  }

  async function readAll(id = A): Promise<unknown[]> {
    return [await directory.readSecret(id), await directory.readNextSecret(id), await directory.readNames(id)];
  }

  async function texts(): Promise<string> {
    const names = ['guest-secret', 'guest-secret-next', 'guest-names'];
    return (await Promise.all(names.map((name) => readFile(fileOf(A, name), 'utf8')))).join('\n');
  }

  function assertSealed(text: string): void {
    for (const secret of ['former', 'next', NAMES.machineId, NAMES.sshHostKey.privateKey.split('\n')[1] ?? ''])
      assert.ok(secret !== '' && !text.includes(secret), text);
  }

  it('are sealed, and read back with the data key of the VM', async () => {
    await directory.holdDataKey(A, newKey());
    await writeAll();
    assertSealed(await texts());
    assert.deepEqual(await readAll(), ['former', 'next', NAMES]);
    await directory.promoteNextSecret(A);
    assert.deepEqual(await readAll(), ['next', null, NAMES]);
  });

  it('are unreadable without the data key, except for the public ssh host key', async () => {
    await directory.holdDataKey(A, newKey());
    await writeAll();
    await directory.forgetDataKey(A);
    assert.deepEqual(await readAll(), [null, null, null]);
    assert.equal(await directory.readSshPublicKey(A), NAMES.sshHostKey.publicKey);
    await assert.rejects(directory.holdDataKey(A, null), DataKeyError);
  });

  it('include the key of the disk, which cannot be read without the data key', async () => {
    await directory.holdDataKey(A, newKey());
    const diskKey = newKey();
    await directory.writeDiskKey(A, diskKey);
    assert.equal(await directory.readDiskKey(A), diskKey);
    assert.match(await readFile(fileOf(A, 'disk-key'), 'utf8'), /^sealed-1:/);
    await assert.rejects(directory.holdDataKey(A, newKey()), DataKeyError);
    await directory.forgetDataKey(A);
    await assert.rejects(directory.readDiskKey(A), DataKeyError);
    await directory.writeDiskKey(A, null);
    assert.equal(await directory.readDiskKey(A), null);
  });

  it('refuse another data key, and keep the one in memory', async () => {
    await directory.holdDataKey(A, newKey());
    await writeAll();
    await assert.rejects(directory.holdDataKey(A, newKey()), DataKeyError);
    assert.deepEqual(await readAll(), ['former', 'next', NAMES]);
  });

  it('refuse a file of another VM with the same key, and an altered one', async () => {
    const key = newKey();
    for (const id of [A, B]) await directory.holdDataKey(id, key);
    await writeAll();
    const sealed = await readFile(fileOf(A, 'guest-secret'), 'utf8');
    await writeFile(fileOf(B, 'guest-secret'), sealed);
    await assert.rejects(directory.readSecret(B), DataKeyError);
    await writeFile(fileOf(A, 'guest-secret'), `${sealed.slice(0, -2)}${sealed.endsWith('AA') ? 'BB' : 'AA'}`);
    await assert.rejects(directory.readSecret(A), DataKeyError);
  });

  it('of an earlier release are sealed with the first data key', async () => {
    await writeAll();
    assert.deepEqual(await readAll(), ['former', 'next', NAMES]);
    assert.equal(await directory.readSshPublicKey(A), NAMES.sshHostKey.publicKey);
    await directory.holdDataKey(A, newKey());
    assertSealed(await texts());
    assert.deepEqual(await readAll(), ['former', 'next', NAMES]);
  });

  it('are removed with the data key', async () => {
    await directory.holdDataKey(A, newKey());
    await writeAll();
    await directory.removeContents(A);
    assert.deepEqual(await readdir(join(root, 'vms', A)), []);
    assert.deepEqual(await readdir(root), ['vms']);
  });

  it('survive a new daemon, which removes data keys of VMs without a folder', async () => {
    for (const id of [A, B]) await directory.holdDataKey(id, newKey());
    await writeAll();
    await rm(join(root, 'vms', B), { recursive: true });
    directory = new VmDirectory(join(root, 'vms'), await DataKeys.open('abcdefgh', [root]));
    await directory.open();
    assert.deepEqual(await readAll(), ['former', 'next', NAMES]);
    assert.deepEqual(await readdir(keys.folder), [A]);
  });

  it('keep their keys in a private folder, also while other keys come and go', async () => {
    const many = Array.from('cdefghijkl', vmIdOf);
    await Promise.all(many.map(async (id) => keys.set(id, newKey()).then(() => keys.remove(id))));
    await keys.set(A, newKey());
    const modes = await Promise.all([keys.folder, join(keys.folder, A)].map(async (path) => (await stat(path)).mode));
    assert.deepEqual(
      modes.map((mode) => mode & 0o777),
      [0o700, 0o600],
    );
  });

  it('have no keys on a disk, or in a folder that another user made', async () => {
    const onDisk = await mkdtemp(join(tmpdir(), 'berth-on-disk-'));
    await assert.rejects(DataKeys.open('abcdefgh', [onDisk, '/nowhere']), /none of .* is a writable tmpfs/);
    await rm(onDisk, { recursive: true });
    await mkdir(keys.folder, { mode: 0o700 });
    await chmod(keys.folder, 0o755);
    await assert.rejects(DataKeys.open('abcdefgh', [root]), /belongs to another user/);
    await rm(keys.folder, { recursive: true });
    await symlink(join(root, 'vms'), keys.folder);
    await assert.rejects(keys.set(A, newKey()), /belongs to another user/);
  });
});
