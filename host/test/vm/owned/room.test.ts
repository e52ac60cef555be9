import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createVm, resizeVm, wakeVm } from '@berth/protocol/calls/vms.ts';
import { ROOM_WAIT_MS } from '../../../src/vm/owned/room.ts';
import { gate } from '../gate.ts';
import { LifecycleFixture, ROOMY, SMALL, vmIdOf } from '../lifecycle/lifecycle-fixture.ts';

const A = vmIdOf('a');
const B = vmIdOf('b');
const LARGE = { ...SMALL, memoryMib: 2_048 };

describe('a verb without room on its host', () => {
  let host: LifecycleFixture;
  beforeEach(async () => {
    host = await LifecycleFixture.start();
    // Room for one VM of LARGE and none beside it.
    host.figures = { ...ROOMY, memTotalMib: 1_024 + 2_500 };
  });
  afterEach(() => host.stop());

  it('waits for a destroy in progress', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: LARGE });
    const { begun, wait, go } = gate();
    host.driver.onDestroy = () => wait();
    const destroyed = host.lifecycle.destroy(A, 2);
    await begun;
    const created = host.lifecycle.create(B, { epoch: 1, spec: SMALL });
    go();
    assert.equal((await created).status, 'running');
    await destroyed;
  });

  it('waits for a sleep in progress, also as a wake', async () => {
    await host.makeAsleep(B);
    await host.lifecycle.create(A, { epoch: 1, spec: LARGE });
    const { begun, wait, go } = gate();
    host.driver.onSleep = () => wait();
    const slept = host.lifecycle.sleep(A, { epoch: 2 });
    await begun;
    const woken = host.lifecycle.wake(B, { epoch: 9, spec: SMALL });
    go();
    assert.equal((await woken).status, 'running');
    await slept;
  });

  it('waits for a create in progress that leaves promised memory unused', async () => {
    host.figures = { ...ROOMY, memAvailableMib: 1_500 };
    const { begun, wait, go } = gate();
    host.driver.onCreate = () => wait();
    const first = host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    await begun;
    const second = host.lifecycle.create(B, { epoch: 1, spec: SMALL });
    go();
    assert.deepEqual(
      (await Promise.all([first, second])).map(({ status }) => status),
      ['running', 'running'],
    );
  });

  it('is refused at once when the verbs in progress leave too little', async () => {
    const { begun, wait, go } = gate();
    host.driver.onCreate = () => wait();
    const first = host.lifecycle.create(A, { epoch: 1, spec: LARGE });
    await begun;
    await assert.rejects(host.lifecycle.create(B, { epoch: 1, spec: SMALL }), { code: 'insufficient_capacity' });
    go();
    await first;
  });

  it('is refused with the missing amount when the awaited sleep fails', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: LARGE });
    const { begun, wait, go } = gate();
    host.driver.onSleep = async () => {
      await wait();
      throw new Error('the disk is full');
    };
    const slept = assert.rejects(host.lifecycle.sleep(A, { epoch: 2 }), { code: 'sleep_failed' });
    await begun;
    const created = assert.rejects(host.lifecycle.create(B, { epoch: 1, spec: SMALL }), {
      code: 'insufficient_capacity',
      message: /1024 requested, 452 available\. .*BERTH_MEMORY_OVERCOMMIT/,
    });
    go();
    await Promise.all([slept, created]);
  });

  it('gives way to a destroy of its own sandbox during the wait', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: LARGE });
    const { begun, wait, go } = gate();
    host.driver.onDestroy = () => wait();
    const destroyed = host.lifecycle.destroy(A, 2);
    await begun;
    const created = assert.rejects(host.lifecycle.create(B, { epoch: 1, spec: SMALL }), { code: 'stale_epoch' });
    await host.lifecycle.destroy(B, 2);
    go();
    await Promise.all([destroyed, created]);
  });

  it('stops waiting when the daemon closes', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: LARGE });
    const { begun, wait, go } = gate();
    host.driver.onDestroy = () => wait();
    const destroyed = host.lifecycle.destroy(A, 2);
    await begun;
    const created = assert.rejects(host.lifecycle.create(B, { epoch: 1, spec: SMALL }), { code: 'internal' });
    const closed = host.lifecycle.close(AbortSignal.abort());
    await created;
    go();
    await Promise.all([closed, destroyed]);
  });

  it('waits for less than the margin of its caller', () => {
    for (const { marginMs } of [createVm, wakeVm, resizeVm]) assert.ok(ROOM_WAIT_MS < marginMs);
  });
});
