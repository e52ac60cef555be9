import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { HostError } from '../../../src/vm/host-error.ts';
import { failing } from '../scripted-driver.ts';
import { gate, type Gate } from '../gate.ts';
import { LifecycleFixture, SMALL, vmIdOf } from './lifecycle-fixture.ts';

const A = vmIdOf('a');
const B = vmIdOf('b');

describe('the lifecycle of VMs', () => {
  let host: LifecycleFixture;
  beforeEach(async () => {
    host = await LifecycleFixture.start();
  });
  afterEach(async () => {
    await host.stop();
  });

  /** Resolves once the driver's next create is in progress; `go` lets it finish. */
  function heldCreate(): Gate {
    const held = gate();
    host.driver.onCreate = ({ signal }) => held.wait(signal);
    return held;
  }

  it('starts a VM with its own identity and reports running only then', async () => {
    const view = await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    assert.deepEqual(view, { id: A, epoch: 1, status: 'running', spec: SMALL, cpuMs: 43 });
    const guest = host.machine.of(A)[0]?.guest;
    assert.equal(guest?.identity?.hostname, 'berth');
    assert.equal(guest?.identity?.secret, await host.directory.readSecret(A));
  });

  it('returns the running VM to a repeated create, without making a second', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    const again = await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    assert.equal(again.status, 'running');
    assert.equal(host.driver.creates, 1);
  });

  it('joins a create in flight', async () => {
    const { begun, go } = heldCreate();
    const first = host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    await begun;
    assert.equal(host.lifecycle.get(A).status, 'creating');
    const second = host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    go();
    assert.deepEqual(await first, await second);
    assert.equal(host.driver.creates, 1);
  });

  it('refuses the same epoch with another spec, and an older epoch', async () => {
    await host.lifecycle.create(A, { epoch: 2, spec: SMALL });
    await assert.rejects(host.lifecycle.create(A, { epoch: 2, spec: { ...SMALL, vcpu: 2 } }), {
      code: 'epoch_conflict',
    });
    await assert.rejects(host.lifecycle.create(A, { epoch: 1, spec: SMALL }), { code: 'stale_epoch' });
    await assert.rejects(host.lifecycle.destroy(A, 1), { code: 'stale_epoch' });
    assert.equal(host.lifecycle.get(A).status, 'running');
  });

  it('replaces the VM of an older epoch', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    const secret = await host.directory.readSecret(A);
    const view = await host.lifecycle.create(A, { epoch: 2, spec: { ...SMALL, vcpu: 2 } });
    assert.deepEqual([view.epoch, view.status, view.spec?.vcpu], [2, 'running', 2]);
    assert.equal(host.machine.of(A).length, 1);
    assert.notEqual(await host.directory.readSecret(A), secret);
  });

  it('leaves only the epoch of a destroyed VM, which refuses a late create', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    assert.deepEqual(await host.lifecycle.destroy(A, 2), { id: A, epoch: 2, status: 'destroyed' });
    assert.deepEqual(await host.folders(), []);
    assert.equal(host.machine.running.size, 0);
    assert.deepEqual(host.lifecycle.list(), []);
    assert.deepEqual(host.lifecycle.get(A), { id: A, epoch: 2, status: 'destroyed' });
    await assert.rejects(host.lifecycle.create(A, { epoch: 1, spec: SMALL }), { code: 'stale_epoch' });
    await assert.rejects(host.lifecycle.create(A, { epoch: 2, spec: SMALL }), { code: 'stale_epoch' });
    await host.restart();
    await assert.rejects(host.lifecycle.create(A, { epoch: 2, spec: SMALL }), { code: 'stale_epoch' });
  });

  it('accepts a second destroy, and one of an unknown VM', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    const both = await Promise.all([host.lifecycle.destroy(A, 2), host.lifecycle.destroy(A, 2)]);
    assert.deepEqual(both[0], both[1]);
    assert.equal((await host.lifecycle.destroy(A, 2)).status, 'destroyed');
    assert.equal((await host.lifecycle.destroy(B, 7)).status, 'destroyed');
    await assert.rejects(host.lifecycle.create(B, { epoch: 7, spec: SMALL }), { code: 'stale_epoch' });
  });

  it('lets a destroy overtake a create in flight', async () => {
    const { begun } = heldCreate();
    const creates = Promise.allSettled([
      host.lifecycle.create(A, { epoch: 1, spec: SMALL }),
      host.lifecycle.create(A, { epoch: 1, spec: SMALL }),
    ]);
    await begun;
    await host.lifecycle.destroy(A, 1);
    for (const settled of await creates) {
      assert.equal(settled.status, 'rejected');
      assert.equal((settled.reason as HostError).code, 'superseded');
    }
    assert.deepEqual(await host.folders(), []);
    assert.equal(host.machine.running.size, 0);
  });

  it('lets a destroy overtake a create that waits for its guest', async () => {
    const asked = Promise.withResolvers<void>();
    host.driver.onGuest = (guest) => {
      guest.handler = () => asked.resolve();
    };
    const create = host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    const rejected = assert.rejects(create, { code: 'superseded' });
    await asked.promise;
    await host.lifecycle.destroy(A, 2);
    await rejected;
    assert.equal(host.machine.running.size, 0);
  });

  it('reports why a VM did not start, leaves nothing running and lets the same epoch retry', async () => {
    host.driver.onCreate = failing('no slot is free');
    await assert.rejects(host.lifecycle.create(A, { epoch: 1, spec: SMALL }), {
      code: 'create_failed',
      message: 'no slot is free',
    });
    const { reason, deathCode, keeps } = host.lifecycle.get(A);
    assert.deepEqual([reason, deathCode, keeps], ['no slot is free', 'not_created', 'nothing']);
    assert.equal(host.lifecycle.capacity().reserved.memoryMib, 0);
    host.driver.onCreate = async () => {};
    assert.equal((await host.lifecycle.create(A, { epoch: 1, spec: SMALL })).status, 'running');
    assert.equal(host.driver.creates, 2);
  });

  it('fails a create when the guest does not read its identity back', async () => {
    host.driver.onGuest = (guest) => {
      guest.readBack = (result) => ({ ...result, machineId: '0'.repeat(32) });
    };
    await assert.rejects(host.lifecycle.create(A, { epoch: 1, spec: SMALL }), {
      code: 'create_failed',
      message: /machine-id differs/,
    });
    assert.equal(host.machine.running.size, 0);
  });

  it('gives up on a guest that does not respond within the deadline', async () => {
    await host.stop();
    host = await LifecycleFixture.start({ createMs: 300 });
    host.driver.onGuest = (guest) => {
      guest.handler = () => {};
    };
    await assert.rejects(host.lifecycle.create(A, { epoch: 1, spec: SMALL }), {
      code: 'create_failed',
      message: /not running within 0\.3 s/,
    });
    assert.equal(host.machine.running.size, 0);
  });

  it('fails a create at once when the process exits before its guest responded', async () => {
    host.driver.onGuest = (guest) => {
      guest.handler = () => void host.machine.kill(A, 'qemu exited with 1');
    };
    await assert.rejects(host.lifecycle.create(A, { epoch: 1, spec: SMALL }), {
      code: 'create_failed',
      message: /qemu exited with 1|closed|hang up/,
    });
    assert.equal(host.lifecycle.get(A).status, 'dead');
  });

  it('reports when and why a VM died, and that its disk remains', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    const beforeUnixMs = Date.now();
    await host.machine.kill(A, 'the kernel took its memory', 'out_of_memory');
    await host.becomes(A, 'dead');
    const { lastAliveUnixMs = 0, ...view } = host.lifecycle.get(A);
    assert.deepEqual(view, {
      id: A,
      epoch: 1,
      status: 'dead',
      reason: 'the kernel took its memory',
      deathCode: 'out_of_memory',
      keeps: 'disk',
      spec: SMALL,
    });
    assert.ok(lastAliveUnixMs >= beforeUnixMs && lastAliveUnixMs <= Date.now());
    await host.restart();
    assert.equal(host.lifecycle.get(A).lastAliveUnixMs, lastAliveUnixMs);
  });

  it('distinguishes a dead VM from one that never started, and never remakes it under its epoch', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    await host.machine.kill(A);
    await host.becomes(A, 'dead');
    assert.equal(host.lifecycle.get(A).reason, 'ended by signal 9');
    await assert.rejects(host.lifecycle.create(A, { epoch: 1, spec: SMALL }), {
      code: 'create_failed',
      message: /ended by signal 9/,
    });
    await assert.rejects(host.exec(A, { command: 'true', timeoutSeconds: 1 }, new AbortController().signal), {
      code: 'vm_not_running',
    });
    await host.restart();
    assert.equal(host.lifecycle.get(A).reason, 'ended by signal 9');
    await host.lifecycle.destroy(A, 2);
    assert.deepEqual(await host.folders(), []);
  });

  it('keeps the record of a failed destroy and finishes it at the retry', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    host.driver.onDestroy = async () => {
      throw new Error('the namespace is busy');
    };
    await assert.rejects(host.lifecycle.destroy(A, 2), /the namespace is busy/);
    assert.equal(host.lifecycle.get(A).status, 'dead');
    assert.deepEqual(await host.folders(), [A]);
    host.driver.onDestroy = async () => {};
    assert.equal((await host.lifecycle.destroy(A, 2)).status, 'destroyed');
    assert.deepEqual(await host.folders(), []);
  });

  it('counts a VM with resources that could not be freed, and frees them before the next attempt', async () => {
    host.driver.onCreate = failing('no device');
    host.driver.onDestroy = async () => {
      throw new Error('busy');
    };
    await assert.rejects(host.lifecycle.create(A, { epoch: 1, spec: SMALL }), {
      code: 'create_failed',
      message: 'no device',
    });
    assert.equal(host.lifecycle.capacity().reserved.memoryMib, SMALL.memoryMib);
    const freed: unknown[] = [];
    host.driver.onCreate = async () => {};
    host.driver.onDestroy = async (state) => void freed.push(state?.['pid']);
    assert.equal((await host.lifecycle.create(A, { epoch: 1, spec: SMALL })).status, 'running');
    assert.deepEqual(freed, [1_000]);
  });

  it('admits only VMs that fit, counting those in creation, and names the shortage', async () => {
    host.figures = { ...host.figures, memTotalMib: 1_024 + 2_500 };
    const { begun, go } = heldCreate();
    const first = host.lifecycle.create(A, { epoch: 1, spec: { ...SMALL, memoryMib: 2_048 } });
    await begun;
    const refused = host.lifecycle.create(B, { epoch: 1, spec: SMALL });
    await assert.rejects(refused, (error: HostError) => {
      assert.equal(error.code, 'insufficient_capacity');
      assert.deepEqual(error.shortage, { resource: 'memoryMib', requested: 1_024, available: 452 });
      return true;
    });
    assert.throws(() => host.lifecycle.get(B), { code: 'vm_not_found' });
    go();
    await first;
    await host.lifecycle.destroy(A, 2);
    assert.equal((await host.lifecycle.create(B, { epoch: 1, spec: SMALL })).status, 'running');
  });

  it('undoes a create in flight when it closes, and leaves running VMs alone', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    const { begun } = heldCreate();
    const create = assert.rejects(host.lifecycle.create(B, { epoch: 1, spec: SMALL }), { code: 'internal' });
    await begun;
    await host.lifecycle.close(AbortSignal.abort());
    await create;
    assert.deepEqual(
      [...host.machine.running.values()].map(({ id }) => id),
      [A],
    );
    await assert.rejects(host.lifecycle.create(vmIdOf('c'), { epoch: 1, spec: SMALL }), { code: 'internal' });
  });
});
