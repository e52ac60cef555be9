import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { OPEN_EGRESS, type EgressPolicy } from '@berth/protocol/egress.ts';
import { failing } from '../scripted-driver.ts';
import { LifecycleFixture, SMALL, vmIdOf } from './lifecycle-fixture.ts';

const A = vmIdOf('a');
const NONE: EgressPolicy = { ...OPEN_EGRESS, revision: 1, mode: 'none' };
const LIST: EgressPolicy = { ...OPEN_EGRESS, revision: 2, mode: 'allow', names: ['example.com'] };

describe('the egress policy of a VM', () => {
  let host: LifecycleFixture;
  beforeEach(async () => {
    host = await LifecycleFixture.start();
  });
  afterEach(async () => {
    await host.stop();
  });

  const inForce = (): EgressPolicy | undefined => host.machine.of(A)[0]?.egress;

  it('is in force from the create, after a change, and after the next daemon adopted the VM', async () => {
    const view = await host.lifecycle.create(A, { epoch: 1, spec: { ...SMALL, egress: NONE } });
    assert.deepEqual([inForce(), view.egressRevision, view.spec], [NONE, 1, SMALL]);
    const changed = await host.lifecycle.setEgress(A, { epoch: 1, egress: LIST });
    assert.deepEqual([inForce(), changed.egressRevision, changed.epoch], [LIST, 2, 1]);
    await host.restart();
    assert.deepEqual([inForce(), host.lifecycle.get(A).egressRevision], [LIST, 2]);
  });

  it('is kept by a wake, also if it changed while the VM was asleep', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: { ...SMALL, egress: NONE } });
    await host.lifecycle.sleep(A, { epoch: 2 });
    await host.lifecycle.wake(A, { epoch: 3, spec: SMALL });
    assert.deepEqual(inForce(), NONE);
    await host.lifecycle.sleep(A, { epoch: 4 });
    await host.lifecycle.setEgress(A, { epoch: 4, egress: LIST });
    await host.lifecycle.wake(A, { epoch: 5, spec: { ...SMALL, egress: NONE } });
    assert.deepEqual(inForce(), LIST);
  });

  it('is kept by a boot of the disk', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: { ...SMALL, egress: NONE } });
    await host.machine.kill(A);
    await host.becomes(A, 'dead');
    await host.lifecycle.wake(A, { epoch: 2, spec: SMALL });
    assert.deepEqual([inForce(), host.driver.boots], [NONE, 1]);
  });

  it('is not replaced by an older revision or under an older epoch', async () => {
    await host.lifecycle.create(A, { epoch: 2, spec: SMALL });
    await host.lifecycle.setEgress(A, { epoch: 2, egress: LIST });
    assert.equal((await host.lifecycle.setEgress(A, { epoch: 2, egress: NONE })).egressRevision, 2);
    await assert.rejects(host.lifecycle.setEgress(A, { epoch: 1, egress: { ...NONE, revision: 3 } }), {
      code: 'stale_epoch',
    });
    assert.deepEqual(inForce(), LIST);
    await host.lifecycle.destroy(A, 3);
    await assert.rejects(host.lifecycle.setEgress(A, { epoch: 3, egress: LIST }), { code: 'stale_epoch' });
    await assert.rejects(host.lifecycle.setEgress(vmIdOf('b'), { epoch: 1, egress: LIST }), { code: 'vm_not_running' });
  });

  it('is reported with the revision in force after a failed change, until a repeat succeeds', async () => {
    const reported = (): number | undefined => host.lifecycle.get(A).egressRevision;
    await host.lifecycle.create(A, { epoch: 1, spec: { ...SMALL, egress: NONE } });
    host.driver.onEgress = async () => {
      assert.equal(reported(), 1);
      throw new Error('nft failed');
    };
    await assert.rejects(host.lifecycle.setEgress(A, { epoch: 1, egress: LIST }), /nft failed/);
    await assert.rejects(host.lifecycle.setEgress(A, { epoch: 1, egress: { ...LIST, revision: 3 } }), /nft failed/);
    assert.deepEqual([reported(), inForce(), host.lifecycle.list()[0]?.egressRevision], [1, NONE, 1]);
    host.driver.onEgress = async () => {};
    // A late repeat of an older request enforces the newest one.
    const repeated = await host.lifecycle.setEgress(A, { epoch: 1, egress: LIST });
    assert.deepEqual([repeated.egressRevision, inForce()], [3, { ...LIST, revision: 3 }]);
  });

  it('is reported with revision 0 after the first change failed', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    host.driver.onEgress = failing('nft failed');
    await assert.rejects(host.lifecycle.setEgress(A, { epoch: 1, egress: NONE }), /nft failed/);
    assert.equal(host.lifecycle.get(A).egressRevision, 0);
  });

  it('is in force after a wake, also if the change before the sleep failed', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: { ...SMALL, egress: NONE } });
    host.driver.onEgress = failing('nft failed');
    await assert.rejects(host.lifecycle.setEgress(A, { epoch: 1, egress: LIST }), /nft failed/);
    await host.lifecycle.sleep(A, { epoch: 2 });
    const woken = await host.lifecycle.wake(A, { epoch: 3, spec: SMALL });
    assert.deepEqual([woken.egressRevision, inForce()], [2, LIST]);
  });

  for (const [policy, row] of [
    ['open', { ...OPEN_EGRESS, revision: 2 }],
    ['list', LIST],
  ] as const) {
    it(`is left as it was when a new daemon cannot enforce it, and the VM is kept (${policy})`, async () => {
      await host.lifecycle.create(A, { epoch: 1, spec: { ...SMALL, egress: NONE } });
      // The daemon is killed between the record and the rules.
      host.driver.onEgress = failing('killed');
      await assert.rejects(host.lifecycle.setEgress(A, { epoch: 1, egress: row }), /killed/);
      await host.restart({ onEgress: failing('nft failed') });
      const view = host.lifecycle.get(A);
      assert.deepEqual([view.status, view.egressRevision, inForce()], ['running', 0, NONE]);
      await host.answersExec(A);
      host.driver.onEgress = async () => {};
      const repeated = await host.lifecycle.setEgress(A, { epoch: 1, egress: row });
      assert.deepEqual([repeated.egressRevision, inForce()], [2, row]);
    });
  }

  it('is reported with the attempts that it refused, while the VM runs', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: { ...SMALL, egress: NONE } });
    const denied = { sinceUnixMs: 1, count: 3, destinations: ['example.com'] };
    for (const vm of host.machine.of(A)) vm.denied = denied;
    assert.deepEqual(host.lifecycle.get(A).egressDenied, denied);
    await host.lifecycle.sleep(A, { epoch: 2 });
    assert.equal(host.lifecycle.get(A).egressDenied, undefined);
  });

  it('does not fail a repeated create when it changed in between', async () => {
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
    const again = await host.lifecycle.create(A, { epoch: 1, spec: { ...SMALL, egress: NONE } });
    assert.deepEqual([again.status, again.egressRevision], ['running', undefined]);
  });
});
