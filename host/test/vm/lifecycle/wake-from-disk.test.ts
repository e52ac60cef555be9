import assert from 'node:assert/strict';
import { access, appendFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { GuestIdentity } from '@berth/protocol/calls/identity.ts';
import type { VmSpec } from '@berth/protocol/host.ts';
import { SnapshotUnusable } from '../../../src/vm/driver.ts';
import { sizeOf } from '../../../src/vm/owned/owned-vm.ts';
import { LifecycleFixture, SMALL, vmIdOf } from './lifecycle-fixture.ts';
import { BOOT_SIZE, failing, MANIFEST } from '../scripted-driver.ts';
import type { ScriptedGuest } from '../scripted-guest.ts';

const A = vmIdOf('a');
const LATE_MS = 3_000;
const LARGE: VmSpec = { ...SMALL, vcpu: 2, memoryMib: 3_072, diskGib: 20 };

describe('waking a VM', () => {
  let host: LifecycleFixture;
  let created: ScriptedGuest;
  beforeEach(async () => {
    host = await LifecycleFixture.start();
    created = await host.makeAsleep(A);
  });
  afterEach(async () => {
    await host.stop();
  });

  async function corrupt(): Promise<void> {
    await appendFile(join(host.directory.snapshotFolder(A), MANIFEST), 'half a line');
  }

  function identityGiven(): GuestIdentity {
    assert.ok(created.identity);
    return created.identity;
  }

  describe('whose snapshot is unusable', () => {
    it('boots its disk at the requested size, and reports that and the reason', async () => {
      await corrupt();
      const view = await host.lifecycle.wake(A, { epoch: 3, spec: LARGE });
      assert.deepEqual([view.status, view.spec, view.woke?.from], ['running', LARGE, 'disk']);
      assert.match(view.woke?.reason ?? '', /its snapshot is unusable: its manifest does not verify/);
      assert.deepEqual(host.driver.resizes, [[BOOT_SIZE, sizeOf(LARGE)]]);
      assert.equal(host.guest(A).secret, await host.directory.readSecret(A));
      await host.answersExec(A);
      await host.lifecycle.sleep(A, { epoch: 4 });
      assert.equal((await host.lifecycle.wake(A, { epoch: 5, spec: LARGE })).woke?.from, 'snapshot');
    });

    it('frees the resources of the attempt before it boots', async () => {
      host.driver.onWake = async () => {
        throw new SnapshotUnusable('QEMU cannot load it');
      };
      await host.lifecycle.wake(A, { epoch: 3, spec: SMALL });
      assert.deepEqual([host.driver.destroys, host.machine.running.size], [1, 1]);
    });

    it('stays asleep while the VM of the failed attempt cannot be ended; the next wake ends it first', async () => {
      host.driver.onWake = async () => {
        throw new SnapshotUnusable('QEMU cannot load it');
      };
      host.driver.onDestroy = failing('busy');
      const asleep = await host.recordOf(A);
      for (const epoch of [3, 4]) {
        await assert.rejects(host.lifecycle.wake(A, { epoch, spec: SMALL }), { code: 'wake_failed' });
        const [left] = host.machine.running.keys();
        const { driverState, sleptState, freed } = await host.recordOf(A);
        assert.deepEqual(
          [driverState?.['pid'], sleptState, freed],
          [left, asleep.driverState, false],
          'what is left is on record',
        );
        const { status, keeps } = host.lifecycle.get(A);
        assert.deepEqual([status, keeps, host.driver.boots, host.machine.running.size], ['asleep', 'snapshot', 0, 1]);
      }
      host.driver.onDestroy = async () => {};
      assert.equal((await host.lifecycle.wake(A, { epoch: 5, spec: SMALL })).woke?.from, 'disk');
      assert.deepEqual([host.driver.boots, host.machine.running.size], [1, 1]);
      await host.answersExec(A);
    });

    it('is dead with its disk when the boot fails too, and can be retried', async () => {
      await corrupt();
      host.driver.onBoot = failing('no bootable disk');
      await assert.rejects(host.lifecycle.wake(A, { epoch: 3, spec: SMALL }), {
        code: 'wake_failed',
        message: 'no bootable disk',
      });
      const { status, deathCode, keeps, reason } = host.lifecycle.get(A);
      assert.deepEqual([status, deathCode, keeps, reason], ['dead', 'wake_failed', 'disk', 'no bootable disk']);
      assert.equal(host.machine.running.size, 0);
      await access(join(host.directory.driverFolder(A), 'disk'));
      host.driver.onBoot = async () => {};
      assert.equal((await host.lifecycle.wake(A, { epoch: 3, spec: SMALL })).woke?.from, 'disk');
    });

    it('is dead with its disk and not running when the boot exceeds the time limit of a wake', async () => {
      await corrupt();
      const { wakeMs } = host.deadlines;
      host.deadlines.wakeMs = LATE_MS;
      host.driver.onBoot = async ({ signal }) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      };
      for (const epoch of [3, 4]) {
        await assert.rejects(host.lifecycle.wake(A, { epoch, spec: SMALL }), {
          code: 'wake_failed',
          message: /not awake within/,
        });
        const { status, keeps } = host.lifecycle.get(A);
        assert.deepEqual([status, keeps, host.machine.running.size], ['dead', 'disk', 0]);
      }
      host.driver.onBoot = async () => {};
      host.deadlines.wakeMs = wakeMs;
      assert.equal((await host.lifecycle.wake(A, { epoch: 5, spec: SMALL })).woke?.from, 'disk');
      assert.equal(host.machine.running.size, 1);
    });

    it('is reported in advance when the snapshot is missing', async () => {
      await rm(join(host.directory.snapshotFolder(A), MANIFEST));
      await host.restart();
      assert.deepEqual([host.lifecycle.get(A).status, host.lifecycle.get(A).keeps], ['asleep', 'disk']);
      const view = await host.lifecycle.wake(A, { epoch: 3, spec: SMALL });
      assert.deepEqual(view.woke, { from: 'disk', reason: 'its snapshot is missing' });
    });
  });

  it('wakes a dead VM from its disk, and reports why it had died', async () => {
    await host.lifecycle.wake(A, { epoch: 3, spec: SMALL });
    await host.machine.kill(A, 'the guest panicked', 'guest_panic');
    await host.becomes(A, 'dead');
    const view = await host.lifecycle.wake(A, { epoch: 4, spec: SMALL });
    assert.deepEqual(view.woke, { from: 'disk', reason: 'the guest panicked' });
    assert.deepEqual([view.status, view.deathCode, view.lastAliveUnixMs], ['running', undefined, undefined]);
    await host.answersExec(A);
  });

  describe('from a disk that may not have its names', () => {
    /** Scripts the machine-id that the next boot's guest reports; null: it cannot run a command. */
    function bootedWith(machineId: string | null, exitCode = 0): void {
      host.driver.onGuest = (booted) => {
        booted.execResult = () =>
          machineId === null
            ? 'nothing'
            : { exitCode, stdout: `${machineId}\n`, stderr: '', truncated: false, timedOut: false };
      };
    }

    it('restores the VM’s names and keys when the disk has others', async () => {
      const identity = identityGiven();
      await corrupt();
      bootedWith('0'.repeat(32));
      await host.lifecycle.wake(A, { epoch: 3, spec: LARGE });
      const again = host.guest(A).identity;
      assert.deepEqual([again?.machineId, again?.sshHostKey], [identity.machineId, identity.sshHostKey]);
      assert.deepEqual([again?.hostname, again?.secret], [SMALL.hostname, await host.directory.readSecret(A)]);
      assert.notEqual(again?.entropy, identity.entropy);
      await host.answersExec(A);
    });

    it('restores them when the disk has the machine-id, but not the host key', async () => {
      await corrupt();
      bootedWith(identityGiven().machineId, 1);
      await host.lifecycle.wake(A, { epoch: 3, spec: SMALL });
      assert.deepEqual(host.guest(A).identity?.sshHostKey, identityGiven().sshHostKey);
    });

    it('changes nothing when the disk has both', async () => {
      await corrupt();
      bootedWith(identityGiven().machineId);
      await host.lifecycle.wake(A, { epoch: 3, spec: SMALL });
      assert.equal(host.guest(A).identity, null);
    });

    it('changes nothing when the guest cannot report them', async () => {
      await corrupt();
      bootedWith(null);
      await host.lifecycle.wake(A, { epoch: 3, spec: SMALL });
      assert.equal(host.guest(A).identity, null);
    });

    it('rejects the disk when it does not take them', async () => {
      await corrupt();
      host.driver.onGuest = (booted) => {
        booted.readBack = (result) => ({ ...result, hostname: 'template' });
      };
      await assert.rejects(host.lifecycle.wake(A, { epoch: 3, spec: SMALL }), {
        code: 'wake_failed',
        message: /hostname is 'template'/,
      });
      assert.deepEqual([host.lifecycle.get(A).status, host.machine.running.size], ['dead', 0]);
    });
  });
});
