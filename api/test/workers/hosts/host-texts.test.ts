// Texts of a host name its paths, processes and addresses. None of them reaches a tenant: not the
// sandbox's row, which the API shows, and not the activity feed.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { vmDeathCode, type HostErrorCode } from '@berth/protocol/host.ts';
import type { SandboxRow } from '../../../src/store/database/schema.ts';
import type { Replica } from '../replica.ts';
import { openWorld, type World } from '../world.ts';

/** As QEMU's last messages, in the error of a driver. */
const TEXT =
  'restoring the template: QEMU exited with exit code 1: qemu-system-x86_64: -blockdev ' +
  'filename=/var/lib/berth/host/vms/sbx_a/vm/disk.qcow2: Failed to get "write" lock';

let world: World;
before(async () => {
  world = await openWorld();
});
after(() => world.close());
afterEach(() => world.calm());

const startReplica = (): Promise<Replica> => world.start({ hostTimeoutMs: 500 });

async function rowOf(id: string, done: (row: SandboxRow) => boolean = () => true): Promise<SandboxRow> {
  const row = await world.until(id, done);
  const activity = await world.db.selectFrom('activity').select('details').where('sandbox_id', '=', id).execute();
  const shown = JSON.stringify([row.status_reason_message, row.last_wake_reason, activity]);
  assert.doesNotMatch(shown, /QEMU exited|\/var\/lib|unix:/);
  return row;
}

async function makeStopped(replica: Replica): Promise<string> {
  const { id } = await replica.ask('create');
  assert.equal((await replica.ask('sleep', { sandboxId: id })).status, 'stopped');
  return id;
}

for (const code of ['create_failed', 'insufficient_capacity', 'epoch_conflict'] satisfies HostErrorCode[]) {
  test(`a create refused as ${code} shows words of the service, not of the host`, async () => {
    const replica = await startReplica();
    world.host.refuseCreates.push({ code, message: TEXT });
    const { id } = await replica.ask('create');
    const row = await rowOf(id);
    assert.deepEqual([row.status, row.status_reason_code], ['failed', code]);
    assert.match(row.status_reason_message ?? '', /^its (VM|host) .+\. [A-Z]/);
  });
}

test('a failed sleep, wake and resize show words of the service, not of the host', async () => {
  const replica = await startReplica();
  const { id: sandboxId } = await replica.ask('create');
  world.host.refuseResizes.push({ code: 'resize_failed', message: TEXT });
  await replica.ask('resize', { sandboxId, size: { vcpu: 4, memoryGb: 2 } });
  await rowOf(sandboxId);
  world.host.refuseSleeps.push({ code: 'sleep_failed', message: TEXT });
  await replica.ask('sleep', { sandboxId });
  assert.match((await rowOf(sandboxId)).status_reason_message ?? '', /^its VM could not be captured/);
  await replica.ask('sleep', { sandboxId });
  world.host.refuseWakes.push({ code: 'wake_failed', message: TEXT });
  await replica.ask('wake', { sandboxId });
  assert.match((await rowOf(sandboxId)).status_reason_message ?? '', /^its VM could not be woken/);
});

test('a wake of a host that does not respond does not show its address', async () => {
  const replica = await startReplica();
  const sandboxId = await makeStopped(replica);
  await world.host.stop();
  assert.equal((await replica.ask('wake', { sandboxId })).status, 'stopped');
  assert.equal((await rowOf(sandboxId)).status_reason_message, 'its host did not respond. Try again later');
  await world.host.start();
});

test('a dead VM and the wake from its disk show words of the service, not of the host', async () => {
  const replica = await startReplica();
  const { id: sandboxId } = await replica.ask('create');
  for (const deathCode of vmDeathCode.options) {
    world.host.killVm(sandboxId, TEXT, { deathCode });
    const row = await rowOf(sandboxId, ({ status }) => status === 'failed');
    assert.equal(row.status_reason_code, deathCode);
    assert.equal((await replica.ask('wake', { sandboxId })).status, 'ready');
    assert.equal((await rowOf(sandboxId)).last_wake_reason, 'it had no usable snapshot, so its disk was booted');
  }
});
