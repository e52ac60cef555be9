import assert from 'node:assert/strict';
import { access } from 'node:fs/promises';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { VmSpec } from '@berth/protocol/host.ts';
import type { HostError } from '../../../src/vm/host-error.ts';
import { NeverContinued } from '../../../src/vm/driver.ts';
import { sizeOf } from '../../../src/vm/owned/owned-vm.ts';
import { gate, type Gate } from '../gate.ts';
import { LifecycleFixture, SMALL, vmIdOf } from './lifecycle-fixture.ts';
import { failing } from '../scripted-driver.ts';

const A = vmIdOf('a');
/** Timeout of a wake that hangs; the steps before that take a fraction, on a slow disk too. */
const LATE_MS = 3_000;
const LARGE: VmSpec = { ...SMALL, vcpu: 2, memoryMib: 3_072, diskGib: 20 };

describe('waking a VM', () => {
  let host: LifecycleFixture;
  beforeEach(async () => {
    host = await LifecycleFixture.start();
    await host.makeAsleep(A);
  });
  afterEach(async () => {
    await host.stop();
  });

  /** Resolves once the driver's next wake is in progress; `go` lets it finish. */
  function heldWake(): Gate {
    const held = gate();
    host.driver.onWake = ({ signal }) => held.wait(signal);
    return held;
  }

  /** Resolves once the guest of the next wake gets a request, to which it never responds. */
  function silentGuest(): Promise<void> {
    const asked = Promise.withResolvers<void>();
    host.driver.onGuest = (woken) => {
      woken.handler = () => asked.resolve();
    };
    return asked.promise;
  }

  it('restores the snapshot with a fresh secret, time and random numbers, and spends it', async () => {
    const former = await host.directory.readSecret(A);
    const beforeUnixMs = Date.now();
    const view = await host.lifecycle.wake(A, { epoch: 3, spec: SMALL });
    const woke = { from: 'snapshot', reason: null };
    assert.deepEqual(view, { id: A, epoch: 3, status: 'running', spec: SMALL, woke, cpuMs: 43 });
    const [told] = host.guest(A).wakes;
    assert.ok(told && told.clockUnixMs >= beforeUnixMs && told.clockUnixMs <= Date.now());
    assert.equal(Buffer.from(told.entropy, 'base64').length, 64);
    assert.notEqual(told.secret, former);
    assert.deepEqual([await host.directory.readSecret(A), await host.directory.readNextSecret(A)], [told.secret, null]);
    await assert.rejects(access(host.directory.snapshotFolder(A)), { code: 'ENOENT' });
    await host.answersExec(A);
    const { snapshot, continued, sleptState, sizeAsked } = await host.recordOf(A);
    assert.deepEqual([snapshot, continued, sleptState, sizeAsked], [false, false, null, null]);
  });

  it('works repeatedly, each time with another secret', async () => {
    const secrets = new Set([await host.directory.readSecret(A)]);
    for (const epoch of [3, 5, 7]) {
      await host.lifecycle.wake(A, { epoch, spec: SMALL });
      secrets.add(await host.directory.readSecret(A));
      await host.lifecycle.sleep(A, { epoch: epoch + 1 });
    }
    assert.equal(secrets.size, 4);
  });

  it('records the spent snapshot and the next secret before the VM runs', async () => {
    const seen: unknown[] = [];
    host.driver.onWake = async (vm) => {
      const beforeContinue = vm.beforeContinue.bind(vm);
      vm.beforeContinue = async () => {
        await beforeContinue();
        const { status, continued, snapshot } = await host.recordOf(A);
        seen.push([status, continued, snapshot]);
      };
      const { status, continued, snapshot } = await host.recordOf(A);
      seen.push([status, continued, snapshot], (await host.directory.readNextSecret(A))?.length);
    };
    await host.lifecycle.wake(A, { epoch: 3, spec: SMALL });
    assert.deepEqual(seen, [['waking', false, true], 43, ['waking', true, false]]);
  });

  it('returns a running VM unchanged and raises its epoch', async () => {
    await host.lifecycle.wake(A, { epoch: 3, spec: SMALL });
    const view = await host.lifecycle.wake(A, { epoch: 6, spec: LARGE });
    assert.deepEqual([view.epoch, view.status, view.spec], [6, 'running', SMALL]);
    assert.equal((await host.recordOf(A)).epoch, 6);
    await assert.rejects(host.lifecycle.sleep(A, { epoch: 5 }), { code: 'stale_epoch' });
    assert.equal(host.driver.wakes, 1);
  });

  it('joins a wake in flight', async () => {
    const { begun, go } = heldWake();
    const first = host.lifecycle.wake(A, { epoch: 3, spec: SMALL });
    await begun;
    assert.equal(host.lifecycle.get(A).status, 'waking');
    const second = host.lifecycle.wake(A, { epoch: 3, spec: SMALL });
    go();
    assert.deepEqual(await first, await second);
    assert.equal(host.driver.wakes, 1);
  });

  it('waits for a sleep in flight', async () => {
    await host.lifecycle.wake(A, { epoch: 3, spec: SMALL });
    const { begun, wait, go } = gate();
    host.driver.onSleep = () => wait();
    const sleep = host.lifecycle.sleep(A, { epoch: 4 });
    await begun;
    const wake = host.lifecycle.wake(A, { epoch: 5, spec: SMALL });
    go();
    assert.equal((await sleep).status, 'asleep');
    assert.deepEqual([(await wake).status, (await wake).epoch], ['running', 5]);
  });

  it('grows the VM to the requested size, and reports its size', async () => {
    const view = await host.lifecycle.wake(A, { epoch: 3, spec: LARGE });
    assert.deepEqual(view.spec, LARGE);
    assert.deepEqual(host.driver.resizes, [[sizeOf(SMALL), sizeOf(LARGE)]]);
    assert.deepEqual([host.guest(A).wakes.length, host.guest(A).sizes], [1, [sizeOf(LARGE)]]);
    assert.equal(host.lifecycle.capacity().reserved.memoryMib, LARGE.memoryMib);
  });

  it('keeps the old size when growing fails, and unplugs the additions', async () => {
    host.driver.onGuest = (woken) => {
      woken.sizeReadBack = (result) => {
        if (result.vcpu !== SMALL.vcpu) throw new Error('vCPU 1 did not come online');

        return result;
      };
    };
    const view = await host.lifecycle.wake(A, { epoch: 3, spec: LARGE });
    assert.deepEqual([view.status, view.spec], ['running', SMALL]);
    assert.deepEqual(host.driver.resizes.at(-1), [sizeOf(LARGE), sizeOf(SMALL)]);
    await host.answersExec(A);
  });

  it('shrinks the VM as far as the guest frees memory and vCPUs', async () => {
    await host.lifecycle.destroy(A, 3);
    await host.lifecycle.create(A, { epoch: 4, spec: LARGE });
    await host.lifecycle.sleep(A, { epoch: 5 });
    host.driver.onResize = async (from, to) => ({ ...to, memoryMib: from.memoryMib, diskGib: from.diskGib });
    const view = await host.lifecycle.wake(A, { epoch: 6, spec: SMALL });
    assert.deepEqual(view.spec && sizeOf(view.spec), { vcpu: 1, memoryMib: 3_072, diskGib: 20 });
  });

  it('is refused without a change when the VM does not fit; its own disk counts as present', async () => {
    host.figures = { ...host.figures, memTotalMib: 1_024 + 1_500, diskFreeGib: 0 };
    await assert.rejects(
      host.lifecycle.wake(A, { epoch: 3, spec: { ...SMALL, memoryMib: 2_048 } }),
      (error: HostError) => {
        assert.equal(error.code, 'insufficient_capacity');
        assert.deepEqual(error.shortage, { resource: 'memoryMib', requested: 2_048, available: 1_500 });
        return true;
      },
    );
    assert.deepEqual([host.lifecycle.get(A).status, host.lifecycle.get(A).epoch], ['asleep', 2]);
    assert.equal((await host.lifecycle.wake(A, { epoch: 3, spec: SMALL })).status, 'running');
  });

  it('to a smaller size is admitted at the size of its snapshot', async () => {
    await host.lifecycle.destroy(A, 3);
    await host.lifecycle.create(A, { epoch: 4, spec: LARGE });
    await host.lifecycle.sleep(A, { epoch: 5 });
    host.figures = { ...host.figures, memTotalMib: 1_024 + 2_048 };
    await assert.rejects(host.lifecycle.wake(A, { epoch: 6, spec: SMALL }), (error: HostError) => {
      assert.deepEqual(error.shortage, { resource: 'memoryMib', requested: LARGE.memoryMib, available: 2_048 });
      return true;
    });
  });

  it('stays asleep with its snapshot when the restore fails, and works the next time', async () => {
    host.driver.onWake = failing('no slot is free');
    await assert.rejects(host.lifecycle.wake(A, { epoch: 3, spec: SMALL }), {
      code: 'wake_failed',
      message: 'no slot is free',
    });
    const { status, keeps, epoch } = host.lifecycle.get(A);
    assert.deepEqual([status, keeps, epoch, host.machine.running.size], ['asleep', 'snapshot', 3, 0]);
    host.driver.onWake = async () => {};
    assert.equal((await host.lifecycle.wake(A, { epoch: 3, spec: SMALL })).woke?.from, 'snapshot');
  });

  it('frees the rest of a failed attempt before the next one, and keeps the snapshot’s state', async () => {
    host.driver.onWake = failing('no device');
    host.driver.onDestroy = async () => {
      throw new Error('busy');
    };
    await assert.rejects(host.lifecycle.wake(A, { epoch: 3, spec: SMALL }), { code: 'wake_failed' });
    assert.equal(host.machine.running.size, 1);
    host.driver.onWake = async () => {};
    host.driver.onDestroy = async () => {};
    assert.equal((await host.lifecycle.wake(A, { epoch: 3, spec: SMALL })).woke?.from, 'snapshot');
    assert.equal(host.machine.running.size, 1);
  });

  describe('whose snapshot is spent although the VM never ran', () => {
    const neverRan = async (): Promise<never> => {
      throw new NeverContinued('QEMU ended');
    };

    it('stays asleep with that snapshot, recorded before the VM is ended, and works the next time', async () => {
      const asleep = await host.recordOf(A);
      const seen: unknown[] = [];
      host.driver.onContinue = neverRan;
      host.driver.onDestroy = async () => {
        const { status, continued, snapshot, sleptState } = await host.recordOf(A);
        seen.push([status, continued, snapshot, sleptState]);
      };
      await assert.rejects(host.lifecycle.wake(A, { epoch: 3, spec: LARGE }), {
        code: 'wake_failed',
        message: 'QEMU ended',
      });
      assert.deepEqual(seen, [['waking', false, true, asleep.driverState]]);
      assert.deepEqual(
        [host.lifecycle.get(A).status, host.lifecycle.get(A).keeps, host.machine.running.size],
        ['asleep', 'snapshot', 0],
      );
      assert.deepEqual(await host.recordOf(A), { ...asleep, epoch: 3 });
      host.driver.onContinue = async () => {};
      assert.equal((await host.lifecycle.wake(A, { epoch: 3, spec: SMALL })).woke?.from, 'snapshot');
      assert.equal(host.machine.running.size, 1);
    });

    it('stays asleep with that snapshot when its VM cannot be ended; the next wake ends it first', async () => {
      host.driver.onContinue = neverRan;
      host.driver.onDestroy = failing('busy');
      await assert.rejects(host.lifecycle.wake(A, { epoch: 3, spec: SMALL }), {
        code: 'wake_failed',
        message: 'QEMU ended',
      });
      assert.deepEqual([host.lifecycle.get(A).keeps, host.machine.running.size], ['snapshot', 1]);
      host.driver.onContinue = async () => {};
      host.driver.onDestroy = async () => {};
      assert.equal((await host.lifecycle.wake(A, { epoch: 3, spec: SMALL })).woke?.from, 'snapshot');
      assert.equal(host.machine.running.size, 1);
    });

    it('leaves the VM to the next daemon, which resumes it, when this one closes', async () => {
      host.driver.onContinue = async () => {
        // Not awaited: the close waits for the verb that contains this call.
        void host.lifecycle.close(AbortSignal.abort());
        await neverRan();
      };
      await assert.rejects(host.lifecycle.wake(A, { epoch: 3, spec: SMALL }), { code: 'internal' });
      assert.deepEqual([(await host.recordOf(A)).continued, host.machine.running.size], [true, 1]);
      await host.restart();
      assert.equal((await host.lifecycle.wake(A, { epoch: 3, spec: SMALL })).woke?.from, 'snapshot');
      assert.equal(host.machine.running.size, 1);
    });

    it('is dead with its disk when the VM may have run', async () => {
      host.driver.onContinue = failing('cont: no answer');
      await assert.rejects(host.lifecycle.wake(A, { epoch: 3, spec: SMALL }), {
        code: 'wake_failed',
        message: 'cont: no answer',
      });
      assert.deepEqual(
        [host.lifecycle.get(A).status, host.lifecycle.get(A).keeps, host.machine.running.size],
        ['dead', 'disk', 0],
      );
      await assert.rejects(access(host.directory.snapshotFolder(A)), { code: 'ENOENT' });
    });
  });

  it('marks the VM dead with its disk when it ran and its guest did not respond', async () => {
    const { wakeMs } = host.deadlines;
    host.deadlines.wakeMs = LATE_MS;
    void silentGuest();
    await assert.rejects(host.lifecycle.wake(A, { epoch: 3, spec: SMALL }), {
      code: 'wake_failed',
      message: /not awake within 3 s/,
    });
    const { status, deathCode, keeps } = host.lifecycle.get(A);
    assert.deepEqual([status, deathCode, keeps, host.machine.running.size], ['dead', 'wake_failed', 'disk', 0]);
    await assert.rejects(access(host.directory.snapshotFolder(A)), { code: 'ENOENT' });
    host.driver.onGuest = () => {};
    host.deadlines.wakeMs = wakeMs;
    const view = await host.lifecycle.wake(A, { epoch: 4, spec: SMALL });
    assert.match(view.woke?.reason ?? '', /not awake within/);
    assert.equal(view.reason, undefined);
  });

  it('fails at once when the process exits before its guest responded', async () => {
    host.driver.onGuest = (woken) => {
      woken.handler = () => void host.machine.kill(A, 'qemu exited with 1');
    };
    await assert.rejects(host.lifecycle.wake(A, { epoch: 3, spec: SMALL }), {
      code: 'wake_failed',
      message: /qemu exited|closed|hang up/,
    });
    assert.equal(host.lifecycle.get(A).status, 'dead');
  });

  it('fails for a VM that never started and for an unknown one', async () => {
    const b = vmIdOf('b');
    host.driver.onCreate = failing('no slot');
    await assert.rejects(host.lifecycle.create(b, { epoch: 1, spec: SMALL }));
    await assert.rejects(host.lifecycle.wake(b, { epoch: 2, spec: SMALL }), { code: 'nothing_to_wake' });
    await assert.rejects(host.lifecycle.wake(vmIdOf('c'), { epoch: 2, spec: SMALL }), { code: 'nothing_to_wake' });
  });

  it('is overtaken by a destroy before the VM runs', async () => {
    const { begun } = heldWake();
    const wake = assert.rejects(host.lifecycle.wake(A, { epoch: 3, spec: SMALL }), { code: 'superseded' });
    await begun;
    await host.lifecycle.destroy(A, 4);
    await wake;
    assert.deepEqual([await host.folders(), host.machine.running.size], [[], 0]);
  });

  it('is overtaken by a destroy while it waits for its guest', async () => {
    const asked = silentGuest();
    const wake = assert.rejects(host.lifecycle.wake(A, { epoch: 7, spec: SMALL }), { code: 'superseded' });
    await asked;
    await host.lifecycle.destroy(A, 8);
    await wake;
    assert.deepEqual([await host.folders(), host.machine.running.size], [[], 0]);
  });

  it('is undone when the daemon closes before the VM ran', async () => {
    const { begun } = heldWake();
    const wake = assert.rejects(host.lifecycle.wake(A, { epoch: 3, spec: SMALL }), { code: 'internal' });
    await begun;
    await host.lifecycle.close(AbortSignal.abort());
    await wake;
    const { status, snapshot } = await host.recordOf(A);
    assert.deepEqual([status, snapshot, host.machine.running.size], ['asleep', true, 0]);
  });

  it('is left to the next daemon when this one closes after the VM ran', async () => {
    const asked = silentGuest();
    const wake = assert.rejects(host.lifecycle.wake(A, { epoch: 3, spec: LARGE }), { code: 'internal' });
    await asked;
    await host.lifecycle.close(AbortSignal.abort());
    await wake;
    assert.equal((await host.recordOf(A)).continued, true);
    host.guest(A).handler = null;
    await host.restart();
    const view = await host.lifecycle.wake(A, { epoch: 3, spec: LARGE });
    assert.deepEqual([view.status, view.spec, view.woke?.from], ['running', LARGE, 'snapshot']);
    await host.answersExec(A);
  });
});
