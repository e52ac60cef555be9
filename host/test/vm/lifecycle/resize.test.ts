import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { reservationOf } from '../../../src/vm/admission.ts';
import type { HostError } from '../../../src/vm/host-error.ts';
import { ResizeFailed } from '../../../src/vm/driver.ts';
import { gate, type Gate } from '../gate.ts';
import { LifecycleFixture, SMALL, vmIdOf } from './lifecycle-fixture.ts';
import { failing } from '../scripted-driver.ts';
import { METRICS, type ScriptedGuest } from '../scripted-guest.ts';

const A = vmIdOf('a');
const SIZE = { vcpu: 1, memoryMib: 1_024, diskGib: 10 };
const LARGE = { vcpu: 2, memoryMib: 3_072, diskGib: 20 };
const NEVER = new AbortController().signal;

describe('resizing a VM', () => {
  let host: LifecycleFixture;
  beforeEach(async () => {
    host = await LifecycleFixture.start();
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
  });
  afterEach(async () => {
    await host.stop();
  });

  const guest = (): ScriptedGuest => host.guest(A);

  /** Resolves once the driver's next resize is in progress; `go` lets it finish. */
  function heldResize(): Gate {
    const held = gate();
    host.driver.onResize = async (_from, to, { signal }) => {
      await held.wait(signal);
      signal.throwIfAborted();
      return to;
    };
    return held;
  }

  it('grows it, has the guest confirm the size, and only then reports it', async () => {
    let before: unknown;
    guest().sizeReadBack = (result) => {
      before = host.lifecycle.get(A).spec;
      return result;
    };
    const view = await host.lifecycle.resize(A, { epoch: 2, size: LARGE });
    assert.deepEqual([view.epoch, view.status, view.spec], [2, 'running', { ...SMALL, ...LARGE }]);
    assert.deepEqual([before, host.driver.resizes, guest().sizes], [SMALL, [[SIZE, LARGE]], [LARGE]]);
    await host.restart();
    assert.deepEqual(host.lifecycle.get(A).spec, { ...SMALL, ...LARGE });
    assert.equal((await host.lifecycle.resize(A, { epoch: 2, size: LARGE })).epoch, 2);
    assert.deepEqual(host.driver.resizes, []);
  });

  it('joins a resize in flight; a sleep waits for it and sleeps at the new size', async () => {
    const { begun, go } = heldResize();
    const first = host.lifecycle.resize(A, { epoch: 2, size: LARGE });
    await begun;
    assert.equal(host.lifecycle.get(A).status, 'running');
    const second = host.lifecycle.resize(A, { epoch: 2, size: LARGE });
    const sleep = host.lifecycle.sleep(A, { epoch: 3 });
    go();
    assert.deepEqual((await first).spec, { ...SMALL, ...LARGE });
    await second.catch(() => undefined);
    assert.deepEqual((await sleep).spec, { ...SMALL, ...LARGE });
    assert.equal(host.driver.resizes.length, 1);
  });

  it('is refused by name for a smaller size and for a stopped VM', async () => {
    const less = { ...LARGE, diskGib: 5 };
    await assert.rejects(host.lifecycle.resize(A, { epoch: 2, size: less }), {
      code: 'invalid_request',
      message: /diskGib 5/,
    });
    await host.lifecycle.sleep(A, { epoch: 2 });
    await assert.rejects(host.lifecycle.resize(A, { epoch: 3, size: LARGE }), { code: 'vm_not_running' });
    await assert.rejects(host.lifecycle.resize(vmIdOf('b'), { epoch: 3, size: LARGE }), { code: 'vm_not_running' });
  });

  it('is admitted only when the increase fits, and counted while in flight', async () => {
    host.figures = { ...host.figures, memTotalMib: 1_024 + 3_072 };
    await assert.rejects(
      host.lifecycle.resize(A, { epoch: 2, size: { ...LARGE, memoryMib: 4_096 } }),
      (error: HostError) => {
        assert.equal(error.code, 'insufficient_capacity');
        assert.deepEqual(error.shortage, { resource: 'memoryMib', requested: 3_072, available: 2_048 });
        return true;
      },
    );
    const { begun, go } = heldResize();
    const resize = host.lifecycle.resize(A, { epoch: 2, size: LARGE });
    await begun;
    assert.deepEqual(host.lifecycle.capacity().reserved, reservationOf(LARGE));
    await assert.rejects(host.lifecycle.create(vmIdOf('b'), { epoch: 1, spec: SMALL }), {
      code: 'insufficient_capacity',
    });
    go();
    await resize;
  });

  it('leaves the VM unchanged under the new epoch when the driver fails', async () => {
    host.driver.onResize = failing('no free memory slot');
    await assert.rejects(host.lifecycle.resize(A, { epoch: 2, size: LARGE }), {
      code: 'resize_failed',
      message: 'no free memory slot',
    });
    const { status, epoch, spec } = host.lifecycle.get(A);
    assert.deepEqual([status, epoch, spec, (await host.recordOf(A)).epoch], ['running', 2, SMALL, 2]);
    host.driver.onResize = async (_from, to) => to;
    assert.equal((await host.lifecycle.resize(A, { epoch: 2, size: LARGE })).spec?.vcpu, 2);
  });

  it('counts and records resources that stay plugged in when the driver fails', async () => {
    const has = { vcpu: 1, memoryMib: 3_072, diskGib: 10 };
    host.driver.onResize = async () => {
      throw new ResizeFailed('the disk does not grow', has, null);
    };
    await assert.rejects(host.lifecycle.resize(A, { epoch: 2, size: LARGE }), {
      code: 'resize_failed',
      message: 'the disk does not grow',
    });
    assert.deepEqual(
      [host.lifecycle.get(A).spec, (await host.recordOf(A)).spec],
      [
        { ...SMALL, ...has },
        { ...SMALL, ...has },
      ],
    );
    assert.deepEqual(host.lifecycle.capacity().reserved, reservationOf(has));
  });

  it('undoes additions that the guest does not confirm, and records those that cannot be undone', async () => {
    guest().sizeReadBack = (result) => ({ ...result, memoryMib: 1_024 });
    host.driver.onResize = async (from, to) => ({ ...to, diskGib: Math.max(from.diskGib, to.diskGib) });
    await assert.rejects(host.lifecycle.resize(A, { epoch: 2, size: LARGE }), {
      code: 'resize_failed',
      message: /1024 MiB of memory, not 3072/,
    });
    assert.deepEqual(host.driver.resizes, [
      [SIZE, LARGE],
      [LARGE, SIZE],
    ]);
    assert.deepEqual(host.lifecycle.get(A).spec, { ...SMALL, diskGib: 20 });
    assert.equal((await host.recordOf(A)).spec.diskGib, 20);
  });

  it('records the rest when the driver can only partly undo an unconfirmed resize', async () => {
    const left = { vcpu: 1, memoryMib: 3_072, diskGib: 20 };
    guest().handler = (_request, response) => void response.writeHead(500).end('{}');
    host.driver.onResize = async (from, to) => {
      if (from.vcpu > to.vcpu) throw new ResizeFailed('its time is over', left, null);

      return to;
    };
    await assert.rejects(host.lifecycle.resize(A, { epoch: 2, size: LARGE }), { code: 'resize_failed' });
    assert.deepEqual((await host.recordOf(A)).spec, { ...SMALL, ...left });
  });

  it('is overtaken by a destroy', async () => {
    const { begun } = heldResize();
    const resize = assert.rejects(host.lifecycle.resize(A, { epoch: 2, size: LARGE }), { code: 'superseded' });
    await begun;
    await host.lifecycle.destroy(A, 3);
    await resize;
    assert.deepEqual([await host.folders(), host.machine.running.size], [[], 0]);
  });

  it('fails when the process exits meanwhile, and the VM is dead', async () => {
    guest().handler = () => void host.machine.kill(A, 'qemu exited with 1');
    await assert.rejects(host.lifecycle.resize(A, { epoch: 2, size: LARGE }), { code: 'resize_failed' });
    await host.becomes(A, 'dead');
    assert.equal(host.lifecycle.get(A).reason, 'qemu exited with 1');
  });
});

describe('the metrics of a VM', () => {
  it('combine figures of its guest and its host, while it runs', async () => {
    const host = await LifecycleFixture.start();
    try {
      await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
      const { sampledAtUnixMs, ...said } = await host.lifecycle.metrics(A, NEVER);
      assert.ok(sampledAtUnixMs <= Date.now());
      assert.deepEqual(said, {
        guest: METRICS,
        host: { cpuMs: 42.5, residentMib: 100, unsharedMib: 10, diskUsedMib: 3, networkInBytes: 1, networkOutBytes: 2 },
      });
      await host.lifecycle.sleep(A, { epoch: 2 });
      await assert.rejects(host.lifecycle.metrics(A, NEVER), { code: 'vm_not_running' });
      await assert.rejects(host.lifecycle.metrics(vmIdOf('b'), NEVER), { code: 'vm_not_found' });
    } finally {
      await host.stop();
    }
  });
});
