import { OPEN_EGRESS, type EgressPolicy } from '@berth/protocol/egress.ts';
import assert from 'node:assert/strict';
import { DIRECT_GUESTS } from '../../src/guest/client.ts';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { pino } from 'pino';
import { DataKeys } from '../../src/vm/directory/data-keys.ts';
import { FenceDirectory } from '../../src/vm/directory/fence.ts';
import { VmDirectory, type VmRecord } from '../../src/vm/directory/record.ts';
import { GuestStreams } from '../../src/guest/guest-streams.ts';
import { VmLifecycle } from '../../src/vm/lifecycle/lifecycle.ts';
import { POLICY, ROOMY, SMALL, vmIdOf } from '../vm/lifecycle/lifecycle-fixture.ts';
import type { ScriptedGuest } from '../vm/scripted-guest.ts';
import { PoolFixture } from './pool-fixture.ts';

const A = vmIdOf('a');
const B = vmIdOf('b');
const DEADLINES = { createMs: 10_000, sleepMs: 10_000, wakeMs: 10_000, resizeMs: 10_000, adoptMs: 2_000 };

describe('a create on a host with a warm pool', () => {
  let fixture: PoolFixture;
  let directory: VmDirectory;
  let lifecycle: VmLifecycle;
  let memAvailableMib: () => number;
  beforeEach(async () => {
    memAvailableMib = () => ROOMY.memAvailableMib;
    fixture = await PoolFixture.make({ limits: { min: 1, max: 1 } });
    await open();
    fixture.pool.start();
    await fixture.ready(1);
  });
  afterEach(async () => {
    await lifecycle.close(AbortSignal.abort());
    await fixture.remove();
  });

  /** Opens the folder like a starting daemon. */
  async function open(): Promise<void> {
    directory = new VmDirectory(join(fixture.root, 'vms'), new DataKeys(join(fixture.root, 'keys')));
    const fences = new FenceDirectory(join(fixture.root, 'fences'));
    await directory.open();
    await fences.open();
    const { driver, pool } = fixture;
    lifecycle = new VmLifecycle(
      {
        driver,
        directory,
        fences,
        log: pino({ level: 'silent' }),
        pool,
        guests: DIRECT_GUESTS,
        streams: new GuestStreams({ perVm: 1, perHost: 1 }),
        deadlines: DEADLINES,
      },
      {
        policy: POLICY,
        largest: { vcpu: 8, memoryMib: 65_536, diskGib: 2_048 },
        readHost: () => pool.withPoolMemory({ ...ROOMY, memAvailableMib: memAvailableMib() }),
      },
    );
    await lifecycle.recover();
  }

  async function recordOf(id: string): Promise<VmRecord> {
    const found = await directory.read(id);
    assert.equal(found.kind, 'record');
    return (found as { record: VmRecord }).record;
  }

  function waiting(): { id: string; guest: ScriptedGuest } {
    const [id = ''] = fixture.running().filter((name) => name.startsWith('pool_'));
    const [machine] = fixture.machine.of(id);
    assert.ok(machine !== undefined);
    return machine;
  }

  it('enforces the egress policy on the waiting VM before it gets its identity', async () => {
    const { guest } = waiting();
    const egress: EgressPolicy = { ...OPEN_EGRESS, revision: 1, mode: 'none' };
    let before: unknown = 'not called';
    fixture.driver.onEgress = async () => void (before = guest.identity?.hostname);
    await lifecycle.create(A, { epoch: 1, spec: { ...SMALL, egress } });
    assert.notEqual(before, SMALL.hostname);
    assert.deepEqual(fixture.machine.of((await recordOf(A)).machineId ?? '')[0]?.egress, egress);
  });

  it('takes the waiting VM, under its own secret and name, and restores none', async () => {
    const { id, guest } = waiting();
    const before = { creates: fixture.driver.creates, secret: guest.identity?.secret };
    const over = fixture.pool.underWay();
    const view = await lifecycle.create(A, { epoch: 1, spec: SMALL });
    assert.equal(view.status, 'running');
    assert.equal(fixture.driver.creates, before.creates);
    assert.deepEqual(
      [guest.identity?.hostname, guest.identity?.secret],
      [SMALL.hostname, await directory.readSecret(A)],
    );
    assert.notEqual(guest.identity?.secret, before.secret);
    const { machineId, driverState } = await recordOf(A);
    assert.deepEqual([machineId, driverState?.['id']], [id, id]);
    assert.deepEqual(await readdir(directory.driverFolder(A)), ['disk']);
    over();
  });

  it('takes the memory of a waiting VM that is too small for it', async () => {
    const { id } = waiting();
    const over = fixture.pool.underWay();
    const large = { ...SMALL, memoryMib: 2_048 };
    // A pool VM takes more than the pool's estimate.
    fixture.driver.unsharedMib = 600;
    memAvailableMib = () => (fixture.running().includes(id) ? 1_500 : 2_100);
    const view = await lifecycle.create(A, { epoch: 1, spec: large });
    assert.equal(view.status, 'running');
    assert.deepEqual(fixture.running(), [A]);
    assert.deepEqual(await fixture.folders(), []);
    over();
    assert.equal(fixture.pool.state().ready, 0, 'the pool waits before it makes the next');
  });

  it('leaves the waiting VM when its memory would not be enough', async () => {
    const { id } = waiting();
    fixture.driver.unsharedMib = 600;
    // 596 MiB with the estimate of the VM's memory, 1,100 MiB after its end.
    memAvailableMib = () => (fixture.running().includes(id) ? 500 : 1_100);
    const refused = lifecycle.create(A, { epoch: 1, spec: { ...SMALL, memoryMib: 2_048 } });
    await assert.rejects(refused, { code: 'insufficient_capacity' });
    assert.deepEqual([fixture.running(), fixture.pool.state().ready], [[id], 1]);
  });

  it('restores a new VM when none waits', async () => {
    const over = fixture.pool.underWay();
    await lifecycle.create(A, { epoch: 1, spec: SMALL });
    const view = await lifecycle.create(B, { epoch: 1, spec: SMALL });
    assert.equal(view.status, 'running');
    assert.equal((await recordOf(B)).machineId, null);
    assert.equal(fixture.machine.of(B).length, 1);
    over();
  });

  it('restores a new VM when the pool VM rejects its identity, and leaves nothing of the pool VM', async () => {
    const { id, guest } = waiting();
    guest.handler = (_request, response) => response.writeHead(500).end('{}');
    const over = fixture.pool.underWay();
    const view = await lifecycle.create(A, { epoch: 1, spec: SMALL });
    assert.equal(view.status, 'running');
    assert.equal((await recordOf(A)).machineId, null);
    assert.deepEqual(fixture.running(), [A]);
    assert.ok(!(await fixture.folders()).includes(id));
    over();
  });

  it('leaves a VM that the next daemon adopts and its destroy ends', async () => {
    const { id } = waiting();
    await lifecycle.create(A, { epoch: 1, spec: SMALL });
    await fixture.ready(1);
    await fixture.pool.close();
    fixture.driver.killed = true;
    await lifecycle.close(new AbortController().signal);
    await fixture.restart();
    await open();
    assert.deepEqual(fixture.driver.reapedWith, [[id]]);
    assert.equal(lifecycle.get(A).status, 'running');
    assert.deepEqual(fixture.running(), [id]);
    await lifecycle.destroy(A, 2);
    assert.deepEqual([fixture.running(), await readdir(join(fixture.root, 'vms'))], [[], []]);
  });

  it('is overtaken by a destroy without leaving the VM behind', async () => {
    const { id, guest } = waiting();
    const asked = Promise.withResolvers<void>();
    guest.handler = () => asked.resolve();
    const over = fixture.pool.underWay();
    const create = lifecycle.create(A, { epoch: 1, spec: SMALL });
    const failed = assert.rejects(create, { code: 'superseded' });
    await asked.promise;
    await lifecycle.destroy(A, 2);
    await failed;
    assert.ok(!fixture.running().includes(id));
    assert.deepEqual(
      [fixture.running(), await fixture.folders(), await readdir(join(fixture.root, 'vms'))],
      [[], [], []],
    );
    over();
  });

  it('many at once get separate VMs, one of them the waiting one', async () => {
    const over = fixture.pool.underWay();
    const ids = Array.from('abcdefgh', vmIdOf);
    await Promise.all(ids.map((id) => lifecycle.create(id, { epoch: 1, spec: SMALL })));
    const records = await Promise.all(ids.map(recordOf));
    assert.equal(records.filter(({ machineId }) => machineId !== null).length, 1);
    assert.equal(new Set(records.map(({ id, machineId }) => machineId ?? id)).size, ids.length);
    assert.equal(fixture.running().length, ids.length);
    over();
  });
});
