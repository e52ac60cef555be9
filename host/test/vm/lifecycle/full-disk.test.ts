import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { LifecycleFixture, SMALL, vmIdOf } from './lifecycle-fixture.ts';

const A = vmIdOf('a');

describe('a full disk without room for records', () => {
  let host: LifecycleFixture;
  let full = false;
  beforeEach(async () => {
    full = false;
    host = await LifecycleFixture.start();
    const write = host.directory.write.bind(host.directory);
    host.directory.write = async (record) => {
      if (full) throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });

      await write(record);
    };
  });
  afterEach(async () => {
    await host.stop();
  });

  async function running(): Promise<void> {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
  }

  async function asleep(): Promise<void> {
    await running();
    await host.lifecycle.sleep(A, { epoch: 2 });
  }

  it('fails a create, of which nothing runs, and allows a retry', async () => {
    full = true;
    await assert.rejects(running(), { code: 'create_failed', message: /ENOSPC/ });
    assert.deepEqual([host.lifecycle.get(A).keeps, host.machine.running.size], ['nothing', 0]);
    full = false;
    await running();
  });

  it('fails a sleep, and the VM keeps running', async () => {
    await running();
    full = true;
    await assert.rejects(host.lifecycle.sleep(A, { epoch: 2 }), { code: 'sleep_failed', message: /ENOSPC/ });
    assert.deepEqual([host.lifecycle.get(A).status, host.driver.sleeps], ['running', 0]);
  });

  it('leaves a captured VM asleep, for the next daemon too', async () => {
    await running();
    host.driver.onSlept = async () => {
      full = true;
    };
    assert.equal((await host.lifecycle.sleep(A, { epoch: 2 })).status, 'asleep');
    await host.restart();
    assert.deepEqual([host.lifecycle.get(A).status, host.lifecycle.get(A).keeps], ['asleep', 'snapshot']);
    assert.equal((await host.lifecycle.wake(A, { epoch: 3, spec: SMALL })).woke?.from, 'snapshot');
  });

  it('fails a wake and keeps the snapshot for the next one', async () => {
    await asleep();
    full = true;
    await assert.rejects(host.lifecycle.wake(A, { epoch: 3, spec: SMALL }), { code: 'wake_failed', message: /ENOSPC/ });
    full = false;
    host.driver.onWake = async () => {
      full = true;
    };
    await assert.rejects(host.lifecycle.wake(A, { epoch: 3, spec: SMALL }), { code: 'wake_failed', message: /ENOSPC/ });
    assert.deepEqual([host.lifecycle.get(A).status, host.machine.running.size], ['asleep', 0]);
    full = false;
    host.driver.onWake = async () => {};
    assert.equal((await host.lifecycle.wake(A, { epoch: 3, spec: SMALL })).woke?.from, 'snapshot');
  });

  it('leaves nothing running of a wake with a silent guest', async () => {
    await asleep();
    host.driver.onGuest = (guest) => {
      guest.handler = (_request, response) => {
        full = true;
        response.destroy();
      };
    };
    await assert.rejects(host.lifecycle.wake(A, { epoch: 3, spec: SMALL }), { code: 'wake_failed' });
    const { status, keeps } = host.lifecycle.get(A);
    assert.deepEqual([status, keeps, host.machine.running.size], ['dead', 'disk', 0]);
  });

  it('leaves a resized VM at its real size', async () => {
    await running();
    const larger = { vcpu: 2, memoryMib: 2_048, diskGib: 10 };
    host.driver.onResize = async (_from, to) => {
      full = true;
      return to;
    };
    await assert.rejects(host.lifecycle.resize(A, { epoch: 2, size: larger }), /ENOSPC/);
    assert.equal(host.lifecycle.capacity().reserved.memoryMib, larger.memoryMib);
  });

  it('frees the resources of a VM whose process exited', async () => {
    await running();
    full = true;
    await host.machine.kill(A);
    await host.becomes(A, 'dead');
    full = false;
    assert.equal((await host.lifecycle.wake(A, { epoch: 2, spec: SMALL })).woke?.from, 'disk');
    assert.equal(host.driver.destroys, 1);
  });

  for (const [what, begin] of [
    ['runs', running],
    ['sleeps', asleep],
  ] as const) {
    it(`does not block the destroy of a VM that ${what}, which makes room`, async () => {
      await begin();
      full = true;
      await host.lifecycle.destroy(A, 3);
      assert.deepEqual([await host.folders(), host.machine.running.size], [[], 0]);
      assert.equal(host.fences.epochOf(A), 3);
    });
  }
});
