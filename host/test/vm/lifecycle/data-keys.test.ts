// Life of a VM's data key on its host: from the create or wake that sends it to the sleep or death.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { LifecycleFixture, SMALL, vmIdOf } from './lifecycle-fixture.ts';

const A = vmIdOf('a');
const dataKey = randomBytes(32).toString('base64url');
const CREATE = { epoch: 1, spec: SMALL, dataKey };

describe('the data key of a VM', () => {
  let host: LifecycleFixture;
  beforeEach(async () => {
    host = await LifecycleFixture.start();
  });
  afterEach(async () => {
    await host.stop();
  });

  async function heldKeys(): Promise<string[]> {
    return readdir(join(host.root, 'keys')).catch(() => []);
  }

  /** Text of every file in the VM's folder, except the guest's own memory and disk. */
  async function folderText(): Promise<string> {
    const entries = await readdir(join(host.root, 'vms', A), { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile() && !/\/(snapshot|vm)$/.test(entry.parentPath));
    assert.notEqual(files.length, 0);
    return (await Promise.all(files.map(({ parentPath, name }) => readFile(join(parentPath, name), 'utf8')))).join();
  }

  async function assertNoSecret(secrets: readonly string[]): Promise<void> {
    const text = await folderText();
    for (const secret of secrets) assert.ok(!text.includes(secret));
  }

  it('is held while the VM runs, and seals the secrets in the folder from create to destroy', async () => {
    await host.lifecycle.create(A, CREATE);
    const { identity } = host.guest(A);
    const names = await host.directory.readNames(A);
    assert.ok(identity && names);
    const secrets = [dataKey, identity.secret, names.machineId, names.sshHostKey.privateKey.split('\n')[2] ?? ''];
    await assertNoSecret(secrets);
    assert.deepEqual(await heldKeys(), [A]);
    await host.lifecycle.sleep(A, { epoch: 2 });
    assert.deepEqual(await heldKeys(), []);
    await assertNoSecret(secrets);
    assert.match((await host.lifecycle.sshHostKey(A)).publicKey, /^ssh-ed25519 /);
    await host.lifecycle.wake(A, { epoch: 3, spec: SMALL, dataKey });
    assert.deepEqual(await heldKeys(), [A]);
    const [told] = host.guest(A).wakes;
    assert.ok(told);
    await assertNoSecret([...secrets, told.secret]);
    await host.lifecycle.destroy(A, 4);
    assert.deepEqual(await heldKeys(), []);
  });

  it('survives the daemon of a running VM, which the next one adopts', async () => {
    await host.lifecycle.create(A, CREATE);
    await host.restart();
    assert.equal(host.lifecycle.get(A).status, 'running');
    await host.answersExec(A);
    await host.lifecycle.sleep(A, { epoch: 2 });
    await host.lifecycle.wake(A, { epoch: 3, spec: SMALL, dataKey });
    await host.answersExec(A);
  });

  for (const [what, other] of [
    ['another key', randomBytes(32).toString('base64url')],
    ['no key', undefined],
  ] as const) {
    it(`is required by a wake: with ${what} the VM stays asleep with its snapshot`, async () => {
      await host.lifecycle.create(A, CREATE);
      await host.lifecycle.sleep(A, { epoch: 2 });
      await assert.rejects(host.lifecycle.wake(A, { epoch: 3, spec: SMALL, dataKey: other }), {
        code: 'wake_failed',
        message: /data key/,
      });
      const { status, keeps } = host.lifecycle.get(A);
      assert.deepEqual([status, keeps, await heldKeys()], ['asleep', 'snapshot', []]);
      const view = await host.lifecycle.wake(A, { epoch: 3, spec: SMALL, dataKey });
      assert.equal(view.woke?.from, 'snapshot');
    });
  }

  it('is forgotten when the VM dies, and sent again for the boot of its disk', async () => {
    await host.lifecycle.create(A, CREATE);
    await host.machine.kill(A);
    await host.becomes(A, 'dead');
    await host.restart();
    assert.deepEqual(await heldKeys(), []);
    const view = await host.lifecycle.wake(A, { epoch: 2, spec: SMALL, dataKey });
    assert.equal(view.woke?.from, 'disk');
  });

  it('of a VM from an earlier release seals its files at the next sleep', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    const secret = await host.directory.readSecret(A);
    assert.ok(secret !== null && (await folderText()).includes(secret));
    await host.lifecycle.sleep(A, { epoch: 2, dataKey });
    await assertNoSecret([secret]);
    await host.lifecycle.wake(A, { epoch: 3, spec: SMALL, dataKey });
    await host.answersExec(A);
  });

  it('is required by a create with encrypted disks, whose key differs per VM', async () => {
    host.encryptDisks = true;
    await host.restart();
    await assert.rejects(host.lifecycle.create(A, { epoch: 1, spec: SMALL }), { message: /BERTH_ENCRYPT_DISKS/ });
    const ids = [A, vmIdOf('b')];
    const diskKeys: (string | null)[] = [];
    for (const id of ids) {
      await host.lifecycle.create(id, { ...CREATE, epoch: 2 });
      diskKeys.push(await host.directory.readDiskKey(id));
    }
    assert.ok(diskKeys[0] && diskKeys[1] && diskKeys[0] !== diskKeys[1]);
    await assertNoSecret([diskKeys[0], dataKey]);
    await host.lifecycle.destroy(A, 3);
    assert.deepEqual(await heldKeys(), [ids[1]]);
  });

  it('is forgotten after a create that failed', async () => {
    host.driver.onCreate = () => Promise.reject(new Error('no room'));
    await assert.rejects(host.lifecycle.create(A, CREATE), { code: 'create_failed' });
    assert.deepEqual(await heldKeys(), []);
  });
});
