import assert from 'node:assert/strict';
import { access, readdir } from 'node:fs/promises';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { HostError } from '../../../src/vm/host-error.ts';
import { pino } from 'pino';
import { sleepAll } from '../../../src/vm/lifecycle/sleep-all.ts';
import { gate, type Gate } from '../gate.ts';
import { LifecycleFixture, SMALL, vmIdOf } from './lifecycle-fixture.ts';
import { failing, MANIFEST } from '../scripted-driver.ts';

const A = vmIdOf('a');
const B = vmIdOf('b');
const TRUE = { command: 'true', timeoutSeconds: 5 };
const NEVER = new AbortController().signal;

describe('putting a VM to sleep', () => {
  let host: LifecycleFixture;
  beforeEach(async () => {
    host = await LifecycleFixture.start();
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
  });
  afterEach(async () => {
    await host.stop();
  });

  /** Resolves once the driver's next capture is in progress; `go` lets it finish. */
  function heldSleep(): Gate {
    const held = gate();
    host.driver.onSleep = ({ signal }) => held.wait(signal);
    return held;
  }

  it('leaves its snapshot and disk, and nothing else on the host', async () => {
    const view = await host.lifecycle.sleep(A, { epoch: 2 });
    assert.deepEqual(view, { id: A, epoch: 2, status: 'asleep', spec: SMALL, keeps: 'snapshot' });
    assert.equal(host.machine.running.size, 0);
    assert.deepEqual(await readdir(host.directory.snapshotFolder(A)), [MANIFEST]);
    await access(`${host.directory.driverFolder(A)}/disk`);
    assert.deepEqual(host.lifecycle.capacity().reserved, { vcpu: 0, memoryMib: 0, diskGib: 12 });
    await assert.rejects(host.exec(A, TRUE, NEVER), { code: 'vm_not_running' });
  });

  it('is repeatable for an asleep VM under the same and a newer epoch, which then applies', async () => {
    await host.lifecycle.sleep(A, { epoch: 2 });
    assert.equal((await host.lifecycle.sleep(A, { epoch: 2 })).epoch, 2);
    assert.equal((await host.lifecycle.sleep(A, { epoch: 4 })).epoch, 4);
    assert.equal(host.driver.sleeps, 1);
    await host.restart();
    assert.equal(host.lifecycle.get(A).epoch, 4);
    await assert.rejects(host.lifecycle.sleep(A, { epoch: 3 }), { code: 'stale_epoch' });
  });

  it('joins a sleep in flight, which is reported meanwhile', async () => {
    const { begun, go } = heldSleep();
    const first = host.lifecycle.sleep(A, { epoch: 2 });
    await begun;
    assert.deepEqual(host.lifecycle.get(A), { id: A, epoch: 2, status: 'sleeping', spec: SMALL });
    const second = host.lifecycle.sleep(A, { epoch: 2 });
    await assert.rejects(host.exec(A, TRUE, NEVER), { code: 'vm_not_running', message: /is sleeping/ });
    go();
    assert.deepEqual(await first, await second);
    assert.equal(host.driver.sleeps, 1);
  });

  it('waits for a create in flight', async () => {
    const b = vmIdOf('b');
    const { begun, wait, go } = gate();
    host.driver.onCreate = () => wait();
    const create = host.lifecycle.create(b, { epoch: 1, spec: SMALL });
    await begun;
    const sleep = host.lifecycle.sleep(b, { epoch: 2 });
    go();
    await create;
    assert.equal((await sleep).status, 'asleep');
  });

  it('keeps the VM and its commands running under the new epoch after a failed capture; can be retried', async () => {
    const answer = Promise.withResolvers<void>();
    const guest = host.machine.of(A)[0]?.guest;
    assert.ok(guest);
    const asked = Promise.withResolvers<void>();
    guest.handler = (_request, response) => {
      asked.resolve();
      void answer.promise.then(() => response.end('{}'));
      response.writeHead(200);
      response.flushHeaders();
    };
    const command = await host.exec(A, TRUE, NEVER);
    await asked.promise;
    host.driver.onSleep = failing('there is no room on the disk');
    await assert.rejects(host.lifecycle.sleep(A, { epoch: 2 }), {
      code: 'sleep_failed',
      message: /no room on the disk/,
    });
    answer.resolve();
    assert.equal(String(Buffer.concat(await command.toArray())), '{}');
    for (const { status, epoch } of [host.lifecycle.get(A), await host.recordOf(A)])
      assert.deepEqual([status, epoch], ['running', 2]);

    await assert.rejects(readdir(host.directory.snapshotFolder(A)), { code: 'ENOENT' });
    host.driver.onSleep = async () => {};
    assert.equal((await host.lifecycle.sleep(A, { epoch: 2 })).status, 'asleep');
  });

  it('keeps the VM running when the sleep exceeds its time limit', async () => {
    await host.stop();
    host = await LifecycleFixture.start({ sleepMs: 50 });
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    heldSleep();
    await assert.rejects(host.lifecycle.sleep(A, { epoch: 2 }), { code: 'sleep_failed' });
    assert.equal(host.lifecycle.get(A).status, 'running');
  });

  it('ends commands in flight, and reports that the VM is not running any more', async () => {
    const guest = host.machine.of(A)[0]?.guest;
    assert.ok(guest);
    guest.handler = (_request, response) => {
      response.writeHead(200);
      response.flushHeaders();
    };
    const command = await host.exec(A, TRUE, NEVER);
    const failed = assert.rejects(command.toArray(), { code: 'vm_not_running', message: /went to sleep/ });
    await host.lifecycle.sleep(A, { epoch: 2 });
    await failed;
  });

  it('before the host stops spares what sleeps and fails, and a repeated create wakes the VM', async () => {
    await host.lifecycle.create(B, { epoch: 1, spec: SMALL });
    await host.lifecycle.sleep(B, { epoch: 2 });
    const failed = vmIdOf('c');
    await host.lifecycle.create(failed, { epoch: 1, spec: SMALL });
    host.driver.onSleep = async ({ id }) => {
      if (id === failed) throw new Error('no space');
    };
    await sleepAll(host.lifecycle, pino({ level: 'silent' }));
    const states = [A, B, failed].map((id) => host.lifecycle.get(id));
    assert.deepEqual(
      states.map(({ status, epoch }) => [status, epoch]),
      [
        ['asleep', 1],
        ['asleep', 2],
        ['running', 1],
      ],
    );
    const again = await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    assert.deepEqual([again.status, again.woke?.from], ['running', 'snapshot']);
  });

  it('is overtaken by a destroy', async () => {
    const { begun } = heldSleep();
    const sleeps = Promise.allSettled([host.lifecycle.sleep(A, { epoch: 2 }), host.lifecycle.sleep(A, { epoch: 2 })]);
    await begun;
    await host.lifecycle.destroy(A, 3);
    for (const settled of await sleeps) {
      assert.equal(settled.status, 'rejected');
      assert.equal((settled.reason as HostError).code, 'superseded');
    }
    assert.deepEqual([await host.folders(), host.machine.running.size], [[], 0]);
  });

  it('is undone when the daemon closes, and the VM stays running', async () => {
    const { begun } = heldSleep();
    const sleep = assert.rejects(host.lifecycle.sleep(A, { epoch: 2 }), { code: 'internal' });
    await begun;
    await host.lifecycle.close(AbortSignal.abort());
    await sleep;
    assert.equal((await host.recordOf(A)).status, 'running');
    assert.equal(host.machine.of(A).length, 1);
  });

  it('marks a VM dead whose process exits during the capture', async () => {
    host.driver.onSleep = async () => {
      await host.machine.kill(A, 'qemu aborted');
      throw new Error('the control socket closed');
    };
    await assert.rejects(host.lifecycle.sleep(A, { epoch: 2 }), { code: 'sleep_failed' });
    await host.becomes(A, 'dead');
    assert.equal(host.lifecycle.get(A).reason, 'qemu aborted');
  });

  it('is refused while the VM’s death is being recorded, and does not revive it', async () => {
    const { begun, wait, go } = gate();
    const write = host.directory.write.bind(host.directory);
    host.directory.write = async (record) => {
      if (record.status === 'dead') await wait();
      await write(record);
    };
    await host.machine.kill(A, 'qemu aborted');
    await begun;
    const sleep = assert.rejects(host.lifecycle.sleep(A, { epoch: 2 }), { code: 'vm_not_running', message: /dead/ });
    go();
    await sleep;
    assert.deepEqual([host.lifecycle.get(A).status, host.lifecycle.get(A).keeps], ['dead', 'disk']);
    assert.equal((await host.recordOf(A)).status, 'dead');
  });

  describe('when the VM’s resources cannot be released after a complete snapshot', () => {
    it('keeps the snapshot and retries', async () => {
      host.driver.onSlept = async () => {
        host.driver.onSlept = async () => {};
        throw new Error('the process does not end');
      };
      assert.equal((await host.lifecycle.sleep(A, { epoch: 2 })).status, 'asleep');
      assert.equal(host.machine.running.size, 0);
      assert.equal((await host.lifecycle.wake(A, { epoch: 3, spec: SMALL })).woke?.from, 'snapshot');
    });

    it('leaves the VM asleep, and its next wake releases them first', async () => {
      host.driver.onSlept = failing('the process does not end');
      const { status, keeps } = await host.lifecycle.sleep(A, { epoch: 2 });
      assert.deepEqual([status, keeps, host.machine.running.size], ['asleep', 'snapshot', 1]);
      await assert.rejects(host.lifecycle.wake(A, { epoch: 3, spec: SMALL }), {
        code: 'wake_failed',
        message: /does not end/,
      });
      assert.deepEqual([host.lifecycle.get(A).status, host.driver.wakes], ['asleep', 0]);
      host.driver.onSlept = async () => {};
      assert.equal((await host.lifecycle.wake(A, { epoch: 4, spec: SMALL })).woke?.from, 'snapshot');
      assert.equal(host.machine.running.size, 1);
    });

    it('releases them by the next daemon, or by the one after that', async () => {
      host.driver.onSlept = failing('the process does not end');
      await host.lifecycle.sleep(A, { epoch: 2 });
      await host.restart({ onSlept: failing('it still does not end') });
      assert.deepEqual([host.lifecycle.get(A).status, host.machine.running.size], ['asleep', 1]);
      await host.restart();
      assert.deepEqual([host.lifecycle.get(A).status, host.machine.running.size], ['asleep', 0]);
      assert.equal((await host.lifecycle.wake(A, { epoch: 4, spec: SMALL })).woke?.from, 'snapshot');
    });

    it('leaves nothing when it is destroyed', async () => {
      host.driver.onSlept = failing('the process does not end');
      await host.lifecycle.sleep(A, { epoch: 2 });
      await host.lifecycle.destroy(A, 3);
      assert.deepEqual([await host.folders(), host.machine.running.size], [[], 0]);
    });
  });

  it('is refused for a dead VM and an unknown one', async () => {
    await host.machine.kill(A);
    await host.becomes(A, 'dead');
    await assert.rejects(host.lifecycle.sleep(A, { epoch: 2 }), { code: 'vm_not_running' });
    await assert.rejects(host.lifecycle.sleep(vmIdOf('c'), { epoch: 2 }), { code: 'vm_not_running' });
  });

  it('leaves nothing after a destroy of the asleep VM', async () => {
    await host.lifecycle.sleep(A, { epoch: 2 });
    await host.lifecycle.destroy(A, 3);
    assert.deepEqual(await host.folders(), []);
  });
});
