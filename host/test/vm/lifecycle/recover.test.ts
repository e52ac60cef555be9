import assert from 'node:assert/strict';
import { access, mkdir, readdir, readFile, rename, rmdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { VmRecord } from '../../../src/vm/directory/record.ts';
import { sizeOf } from '../../../src/vm/owned/owned-vm.ts';
import { LifecycleFixture, SMALL, vmIdOf } from './lifecycle-fixture.ts';
import { failing, MANIFEST } from '../scripted-driver.ts';

const A = vmIdOf('a');
const B = vmIdOf('b');

describe('recovery of the VMs of an earlier daemon', () => {
  let host: LifecycleFixture;
  beforeEach(async () => {
    host = await LifecycleFixture.start();
  });
  afterEach(async () => {
    await host.stop();
  });

  /** Rewinds a VM's record to an earlier step, as a daemon killed there leaves it. */
  async function rewind(change: Partial<VmRecord>): Promise<void> {
    const found = await host.directory.read(A);
    assert.equal(found.kind, 'record');
    await host.directory.write({ ...(found as { record: VmRecord }).record, ...change });
  }

  async function answersExec(): Promise<void> {
    await host.answersExec(A);
  }

  it('adopts a running VM with its secret, and keeps watching it', async () => {
    await host.lifecycle.create(A, { epoch: 3, spec: SMALL });
    await host.restart();
    assert.deepEqual(host.lifecycle.get(A), { id: A, epoch: 3, status: 'running', spec: SMALL, cpuMs: 43 });
    assert.equal(host.machine.of(A).length, 1);
    assert.equal((await host.lifecycle.create(A, { epoch: 3, spec: SMALL })).status, 'running');
    assert.equal(host.driver.creates, 0);
    await host.answersExec(A);
    await host.machine.kill(A);
    await host.becomes(A, 'dead');
  });

  it('marks a VM dead whose process exited meanwhile, and keeps its disk until its destroy', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    host.driver.killed = true;
    await host.machine.kill(A);
    await host.restart();
    const { status, deathCode, keeps } = host.lifecycle.get(A);
    assert.deepEqual([status, deathCode, keeps], ['dead', 'process_ended', 'disk']);
    assert.match(host.lifecycle.get(A).reason ?? '', /exited while no host daemon ran/);
    assert.equal(await readFile(join(host.directory.driverFolder(A), 'disk'), 'utf8'), 'disk');
    await host.lifecycle.destroy(A, 1);
    assert.deepEqual(await host.folders(), []);
  });

  it('marks a VM dead whose guest does not know the recorded secret', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    await host.directory.writeSecret(A, 'x'.repeat(43));
    await host.restart();
    assert.match(host.lifecycle.get(A).reason ?? '', /does not know the recorded secret/);
    assert.equal(host.machine.running.size, 0);
  });

  it('ends a VM that cannot be taken over and reports why, rather than call it running for ever', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    await host.restart({ onRecover: failing('its network slot is not whole') });
    assert.equal(host.lifecycle.get(A).status, 'dead');
    assert.match(host.lifecycle.get(A).reason ?? '', /could not be taken over: its network slot is not whole/);
    assert.equal(host.machine.running.size, 0);
    assert.equal(await readFile(join(host.directory.driverFolder(A), 'disk'), 'utf8'), 'disk');
    await host.lifecycle.destroy(A, 1);
    assert.deepEqual(await host.folders(), []);
  });

  it('adopts a VM whose guest is too busy to respond in time', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    const guest = host.machine.of(A)[0]?.guest;
    assert.ok(guest);
    guest.handler = () => {};
    await host.restart();
    assert.equal(host.lifecycle.get(A).status, 'running');
    assert.equal(host.machine.running.size, 1);
  });

  it('ends a half-made VM and lets the same epoch remake it', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    await rewind({ status: 'creating', everRan: false });
    await host.restart();
    assert.equal(host.machine.running.size, 0);
    assert.equal(host.lifecycle.get(A).status, 'dead');
    assert.equal(await host.directory.readSecret(A), null);
    assert.equal((await host.lifecycle.create(A, { epoch: 1, spec: SMALL })).status, 'running');
    assert.equal(host.machine.running.size, 1);
  });

  it('finishes a destroy that had begun, and one whose fence was written', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    await rewind({ status: 'destroying', epoch: 2 });
    await host.restart();
    assert.deepEqual([await host.folders(), host.machine.running.size], [[], 0]);
    assert.deepEqual(host.lifecycle.get(A), { id: A, epoch: 2, status: 'destroyed' });

    await host.lifecycle.create(B, { epoch: 1, spec: SMALL });
    await host.fences.raise(B, 1);
    await host.restart();
    assert.deepEqual([await host.folders(), host.machine.running.size], [[], 0]);
  });

  it('frees resources of a dead VM that an earlier daemon could not free', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    await rewind({ status: 'dead', reason: 'ended', freed: false });
    await host.restart();
    assert.equal(host.machine.running.size, 0);
    const found = await host.directory.read(A);
    assert.equal(found.kind === 'record' && found.record.freed, true);
  });

  it('starts although a clean-up fails, and finishes it when the VM is destroyed', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    await rewind({ status: 'destroying', epoch: 2 });
    await host.restart({
      onDestroy: async () => {
        throw new Error('busy');
      },
    });
    assert.deepEqual([host.lifecycle.get(A).status, host.machine.running.size], ['dead', 1]);
    await assert.rejects(host.lifecycle.create(A, { epoch: 2, spec: SMALL }), { code: 'superseded' });
    host.driver.onDestroy = async () => {};
    await host.lifecycle.destroy(A, 2);
    assert.deepEqual([await host.folders(), host.machine.running.size], [[], 0]);
  });

  it('removes a folder without a record, keeps a damaged one until a destroy, and ends their VMs', async () => {
    await mkdir(join(host.root, 'vms', B), { recursive: true });
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    await writeFile(join(host.root, 'vms', A, 'record.json'), '{"version": 1, "id"');
    await host.restart();
    const setAside = `${A}.damaged`;
    assert.deepEqual([await host.folders(), host.machine.running.size], [[setAside], 0]);
    await access(join(host.root, 'vms', setAside, 'vm', 'disk'));
    assert.deepEqual(host.driver.reapedWith, [[]]);
    assert.throws(() => host.lifecycle.get(A), { code: 'vm_not_found' });
    await host.restart();
    assert.deepEqual(await host.folders(), [setAside]);
    await host.lifecycle.destroy(A, 2);
    assert.deepEqual(await host.folders(), []);
  });

  describe('with a VM whose record cannot be read', () => {
    let record: string;
    beforeEach(async () => {
      await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
      record = join(host.root, 'vms', A, 'record.json');
      await rename(record, join(host.root, 'vms', A, 'kept'));
      await mkdir(record);
      await host.restart();
    });

    async function canBeRead(): Promise<void> {
      await rmdir(record);
      await rename(join(host.root, 'vms', A, 'kept'), record);
    }

    it('starts and leaves it alone', async () => {
      assert.deepEqual(host.driver.reapedWith, [], 'what it runs may go by another name than its own');
      assert.deepEqual([await host.folders(), host.machine.running.size], [[A], 1]);
    });

    it('rejects destroy, create and wake until the record can be read', async () => {
      const unread = { code: 'internal', message: /record of the VM .* cannot be read.* EISDIR/ };
      await assert.rejects(host.lifecycle.destroy(A, 2), unread);
      await assert.rejects(host.lifecycle.create(A, { epoch: 2, spec: SMALL }), unread);
      await assert.rejects(host.lifecycle.wake(A, { epoch: 2, spec: SMALL }), unread);
      await rmdir(record);
      await assert.rejects(host.lifecycle.destroy(A, 2), { code: 'internal', message: /it is gone/ });
      await mkdir(record);
      assert.deepEqual([host.fences.epochOf(A), await host.folders(), host.machine.running.size], [null, [A], 1]);
      await canBeRead();
      assert.equal((await host.lifecycle.destroy(A, 2)).status, 'destroyed');
      assert.deepEqual([host.fences.epochOf(A), await host.folders(), host.machine.running.size], [2, [], 0]);
    });

    it('takes it over once, with the first calls after it becomes readable', async () => {
      await canBeRead();
      const views = await Promise.all([1, 1, 1].map((epoch) => host.lifecycle.create(A, { epoch, spec: SMALL })));
      assert.deepEqual(
        views.map(({ status }) => status),
        ['running', 'running', 'running'],
      );
      await answersExec();
      assert.deepEqual([host.driver.recovers, host.driver.creates], [1, 0]);
      assert.equal((await host.lifecycle.sleep(A, { epoch: 2 })).status, 'asleep');
    });
  });

  it('tells the driver which VMs may stay, and leaves entries without a VM name alone', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    await host.lifecycle.create(B, { epoch: 1, spec: SMALL });
    await host.machine.kill(B);
    await mkdir(join(host.root, 'vms', 'lost+found'));
    await host.restart();
    assert.deepEqual(host.driver.reapedWith, [[A]]);
    assert.ok((await stat(join(host.root, 'vms', 'lost+found'))).isDirectory());
  });

  it('identifies a VM by the name in its record', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    await rewind({ machineId: 'pool_x' });
    await host.restart();
    assert.deepEqual(host.driver.reapedWith, [['pool_x']]);
  });

  describe('with a sleep that was interrupted', () => {
    beforeEach(async () => {
      await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    });

    it('resumes the VM when its snapshot is incomplete', async () => {
      await host.directory.makeSnapshotFolder(A);
      await rewind({ status: 'sleeping', epoch: 2 });
      await host.restart();
      const { status, epoch } = host.lifecycle.get(A);
      assert.deepEqual(
        [status, epoch, host.driver.recovers, (await host.recordOf(A)).status],
        ['running', 2, 1, 'running'],
      );
      await answersExec();
      await assert.rejects(stat(host.directory.snapshotFolder(A)), { code: 'ENOENT' });
    });

    it('marks the VM dead with its disk when its process is gone and its snapshot incomplete', async () => {
      await rewind({ status: 'sleeping', epoch: 2 });
      host.driver.killed = true;
      await host.machine.kill(A);
      await host.restart();
      const { status, deathCode, keeps } = host.lifecycle.get(A);
      assert.deepEqual([status, deathCode, keeps], ['dead', 'process_ended', 'disk']);
    });

    it('finishes the sleep when the snapshot is complete, even if the process still runs', async () => {
      const { driverState } = await host.recordOf(A);
      await host.lifecycle.sleep(A, { epoch: 2 });
      await rewind({ status: 'sleeping', snapshot: false, freed: false, driverState });
      await host.restart();
      const { status, keeps } = host.lifecycle.get(A);
      assert.deepEqual([status, keeps, host.driver.sleeps], ['asleep', 'snapshot', 1]);
      assert.equal((await host.lifecycle.wake(A, { epoch: 3, spec: SMALL })).woke?.from, 'snapshot');
    });

    it('never uses the spent snapshot of an earlier sleep', async () => {
      await host.lifecycle.sleep(A, { epoch: 2 });
      const manifest = join(host.directory.snapshotFolder(A), MANIFEST);
      const text = await readFile(manifest, 'utf8');
      await host.lifecycle.wake(A, { epoch: 3, spec: SMALL });
      // Killed before it was removed.
      await host.directory.makeSnapshotFolder(A);
      await writeFile(manifest, text);
      let found: string[] = [];
      host.driver.onSleep = async ({ snapshotFolder }) => {
        found = await readdir(snapshotFolder);
      };
      await host.lifecycle.sleep(A, { epoch: 4 });
      assert.deepEqual(found, []);
      await host.lifecycle.wake(A, { epoch: 5, spec: SMALL });
      await host.directory.makeSnapshotFolder(A);
      await writeFile(manifest, text);
      await host.restart();
      assert.equal(host.lifecycle.get(A).status, 'running');
      await assert.rejects(stat(host.directory.snapshotFolder(A)), { code: 'ENOENT' });
    });
  });

  describe('with a wake that was interrupted', () => {
    beforeEach(async () => {
      await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
      await host.lifecycle.sleep(A, { epoch: 2 });
    });

    it('undoes the wake and keeps its snapshot when nothing had been made', async () => {
      await rewind({ status: 'waking', epoch: 3, sizeAsked: sizeOf(SMALL) });
      await host.restart();
      const { status, keeps, epoch } = host.lifecycle.get(A);
      assert.deepEqual([status, keeps, epoch, host.driver.destroys], ['asleep', 'snapshot', 3, 0]);
      assert.equal((await host.lifecycle.wake(A, { epoch: 3, spec: SMALL })).woke?.from, 'snapshot');
    });

    it('ends a VM that did not run yet, and wakes from the snapshot again', async () => {
      const sleptState = (await host.recordOf(A)).driverState;
      await host.lifecycle.create(B, { epoch: 1, spec: SMALL });
      const { driverState } = await host.recordOf(B);
      await rewind({ status: 'waking', epoch: 3, sizeAsked: sizeOf(SMALL), sleptState, driverState, freed: false });
      await host.restart();
      // Stands for the VM that the wake had started.
      assert.equal(host.machine.of(B).length, 0);
      const record = await host.recordOf(A);
      assert.deepEqual(
        [record.status, record.driverState, record.sleptState, record.freed],
        ['asleep', sleptState, null, true],
      );
      assert.equal((await host.lifecycle.wake(A, { epoch: 3, spec: SMALL })).woke?.from, 'snapshot');
    });

    for (const knows of ['former', 'next'] as const) {
      it(`finishes the wake of a running VM whose guest knows the ${knows} secret; callers join`, async () => {
        await host.lifecycle.wake(A, { epoch: 3, spec: SMALL });
        const inForce = await host.directory.readSecret(A);
        assert.ok(inForce);
        const other = 'o'.repeat(43);
        await host.directory.writeSecret(A, knows === 'former' ? inForce : other);
        await host.directory.writeNextSecret(A, knows === 'former' ? other : inForce);
        const asked = { vcpu: 2, memoryMib: 2_048, diskGib: 20 };
        await rewind({ status: 'waking', continued: true, sizeAsked: asked });
        await host.restart();
        const view = await host.lifecycle.wake(A, { epoch: 3, spec: { ...SMALL, ...asked } });
        assert.deepEqual([view.status, view.spec], ['running', { ...SMALL, ...asked }]);
        assert.deepEqual(
          [await host.directory.readSecret(A), await host.directory.readNextSecret(A)],
          [knows === 'former' ? other : inForce, null],
        );
        await answersExec();
        assert.equal(host.driver.wakes, 0);
      });
    }

    it('finishes the wake at the new size when the guest already had that', async () => {
      await host.lifecycle.wake(A, { epoch: 3, spec: SMALL });
      const asked = { vcpu: 2, memoryMib: 2_048, diskGib: 20 };
      await rewind({ status: 'waking', continued: true, sizeAsked: asked });
      const guest = host.machine.of(A)[0]?.guest;
      assert.ok(guest);
      guest.sizeReadBack = (result) => {
        if (result.vcpu === 1) throw new Error('it has 2 vCPUs');

        return result;
      };
      await host.restart();
      assert.equal((await host.lifecycle.wake(A, { epoch: 3, spec: SMALL })).spec?.vcpu, 2);
    });

    it('marks the VM dead with its disk when it ran and is gone', async () => {
      await host.lifecycle.wake(A, { epoch: 3, spec: SMALL });
      await rewind({ status: 'waking', continued: true });
      host.driver.killed = true;
      await host.machine.kill(A);
      await host.restart();
      const { status, keeps } = host.lifecycle.get(A);
      assert.deepEqual([status, keeps], ['dead', 'disk']);
      assert.equal((await host.lifecycle.wake(A, { epoch: 4, spec: SMALL })).woke?.from, 'disk');
    });

    it('marks the VM dead with its disk when the disk was being booted', async () => {
      await rewind({ status: 'waking', epoch: 3, snapshot: false, reason: 'its snapshot is unusable', freed: false });
      await host.restart();
      const { status, deathCode, keeps } = host.lifecycle.get(A);
      assert.deepEqual([status, deathCode, keeps, host.driver.destroys > 0], ['dead', 'wake_failed', 'disk', true]);
      assert.equal((await host.lifecycle.wake(A, { epoch: 3, spec: SMALL })).woke?.from, 'disk');
    });

    it('leaves a sleeping VM alone, and destroys it with its snapshot when a destroy had begun', async () => {
      await host.restart();
      assert.deepEqual(
        [host.lifecycle.get(A).status, host.driver.destroys, host.driver.reapedWith],
        ['asleep', 0, [[]]],
      );
      await rewind({ status: 'destroying', epoch: 3 });
      await host.restart();
      assert.deepEqual(await host.folders(), []);
    });
  });

  it('never writes the secret into the record', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    const secret = await host.directory.readSecret(A);
    assert.ok(secret);
    assert.ok(!(await readFile(join(host.root, 'vms', A, 'record.json'), 'utf8')).includes(secret));
    assert.equal((await stat(join(host.root, 'vms', A, 'guest-secret'))).mode & 0o777, 0o600);
  });
});
