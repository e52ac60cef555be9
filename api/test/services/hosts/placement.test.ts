// Host reservations with a real database: no capacity is promised twice, and refusals leave
// nothing.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { sql } from 'kysely';
import { transitionSandbox } from '../../../src/services/sandboxes/transition.ts';
import { listHostsFree, upsertHost } from '../../../src/store/hosts/hosts.ts';
import type { SandboxRow } from '../../../src/store/database/schema.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';
import { lockWaiters } from '../../world/lock-waiters.ts';
import { deadlineOf } from '../../../../os/test/until.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());
beforeEach(async () => {
  await api.db.deleteFrom('sandbox').execute();
  await api.db.deleteFrom('host').execute();
});

const addHost = (id: string, vcpu: number, memoryGb: number, diskGib: number): Promise<void> =>
  upsertHost(api.db, {
    id,
    url: `unix:/nowhere/${id}`,
    startId: '1',
    driver: 'fake',
    accelerator: 'none',
    capacity: { vcpu, memoryMib: memoryGb * 1024, diskGib },
    reserved: { vcpu: 0, memoryMib: 0, diskGib: 0 },
  });
const create = (machineSize = 'small'): Promise<Answer> =>
  api.call('POST', `/v1/orgs/${api.orgId}/sandboxes`, {
    body: { agent: 'agent_one', projectId: api.projectId, machineSize },
    headers: { prefer: 'respond-async' },
  });
const rows = () => api.db.selectFrom('sandbox').selectAll().execute();

test('a create without capacity is 503 with Retry-After and the shortage, and leaves nothing', async () => {
  await addHost('a', 64, 4, 500);
  api.steps.length = 0;
  const before = await api.db.selectFrom('activity').select('id').execute();
  const answer = await create('large');
  assert.equal(answer.status, 503);
  assert.equal(answer.body.error.code, 'insufficient_capacity');
  assert.match(answer.body.error.message, /needs 8192 MiB of memory, at most 4096 free on one host/);
  assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/);
  assert.deepEqual([await rows(), api.steps], [[], []]);
  assert.deepEqual(await api.db.selectFrom('activity').select('id').execute(), before);
});

test('concurrent creates never promise more than the capacity', async () => {
  await addHost('a', 7, 100, 500);
  const answers = await Promise.all(Array.from({ length: 12 }, () => create()));
  assert.deepEqual(
    [201, 503].map((wanted) => answers.filter(({ status }) => status === wanted).length),
    [7, 5],
  );
  assert.equal((await rows()).length, 7);
});

test('concurrent creates spread over hosts and use their whole capacity', async () => {
  await addHost('a', 3, 100, 500);
  await addHost('b', 4, 100, 500);
  const answers = await Promise.all(Array.from({ length: 9 }, () => create()));
  assert.equal(answers.filter(({ status }) => status === 201).length, 7);
  const byHost = Map.groupBy(await rows(), (row) => row.host_id);
  assert.deepEqual([byHost.get('a')?.length, byHost.get('b')?.length], [3, 4]);
});

test('concurrent creates that lock full hosts in opposite orders are refused without deadlock', async () => {
  await addHost('a', 1, 200, 500);
  await addHost('b', 1, 100, 500);
  const waiting = async (count: number): Promise<void> => {
    for (const deadline = Date.now() + deadlineOf(10_000); ;) {
      const waiters = await lockWaiters(api.db);
      if (waiters === count) return;
      assert.ok(Date.now() < deadline, `${waiters} creates wait, not ${count}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  const answers = await api.db.transaction().execute(async (trx) => {
    // A create waits for a and would lock b next; another waits for b, then a. Then both hosts are
    // full.
    await trx.selectFrom('host').select('id').where('id', '=', 'a').forUpdate().execute();
    const first = create();
    await waiting(1);
    await addHost('b', 1, 300, 500);
    await trx.selectFrom('host').select('id').where('id', '=', 'b').forUpdate().execute();
    const second = create();
    await waiting(2);
    await sql`update host set capacity_vcpu = 0`.execute(trx);
    return [first, second];
  });
  for (const answer of await Promise.all(answers)) assert.equal(answer.body.error.code, 'insufficient_capacity');
});

test('failed and deleted sandboxes free their capacity; one being destroyed does not yet', async () => {
  await addHost('a', 1, 100, 500);
  const { id } = (await create()).body.sandbox;
  const setStatus = (changed: object) => api.db.updateTable('sandbox').set(changed).where('id', '=', id).execute();
  await setStatus({ status: 'destroying' });
  assert.equal((await create()).status, 503);
  await setStatus({ status: 'failed', status_reason_code: 'x', status_reason_message: 'y' });
  const second = await create();
  assert.equal(second.status, 201);
  await api.db
    .updateTable('sandbox')
    .set({ status: 'deleted', deleted_at: new Date() })
    .where('id', '=', second.body.sandbox.id)
    .execute();
  assert.equal((await create()).status, 201);
});

const verb = (id: string, name: string, body?: object): Promise<Answer> =>
  api.call('POST', `/v1/sandboxes/${id}/${name}`, {
    headers: { prefer: 'respond-async' },
    ...(body === undefined ? {} : { body }),
  });

const destroy = async (id: string): Promise<void> => {
  assert.equal((await verb(id, 'destroy')).body.sandbox.status, 'destroying');
};

test('sandboxes being destroyed without a VM take no capacity from creates or wakes', async () => {
  await addHost('a', 2, 2, 500);
  const asleep = await api.makeSandbox('stopped', { host_id: 'a' });
  const dead = { host_id: 'a', status_reason_code: 'guest_panic', status_reason_message: 'it panicked' };
  const others = await Promise.all([
    ...Array.from({ length: 5 }, () => api.makeSandbox('stopped', { host_id: 'a' })),
    ...Array.from({ length: 5 }, () => api.makeSandbox('failed', { ...dead, wakes_from: 'disk' })),
  ]);
  for (const { id } of others) await destroy(id);
  assert.equal((await create()).status, 201);
  assert.equal((await verb(asleep.id, 'wake')).status, 200);
});

test("a sandbox's holdings at the start of its destroy stay reserved until it is deleted", async () => {
  await addHost('a', 8, 8, 100);
  const free = async (): Promise<unknown> => (await listHostsFree(api.db, { hostId: 'a' }))[0];
  const all = { id: 'a', vcpu: 8, memory_mib: 8_192, disk_gib: 100 };
  const withoutMachine = { ...all, vcpu: 7, memory_mib: 7_168, disk_gib: 88 };
  const withoutDisk = { ...all, disk_gib: 88 };
  const failedWith = (code: string) => ({ status_reason_code: code, status_reason_message: 'of a test' });
  const cases: [what: string, made: SandboxRow, held: unknown][] = [];
  for (const status of ['provisioning', 'running', 'ready', 'sleeping', 'waking'] as const)
    cases.push([status, await api.makeSandbox(status, { host_id: null }), withoutMachine]);

  for (const [what, status, changes, held] of [
    ['asleep', 'stopped', {}, withoutDisk],
    ['asleep after a wake that was given up', 'stopped', failedWith('wake_failed'), withoutMachine],
    ['dead with its disk', 'failed', { ...failedWith('guest_panic'), wakes_from: 'disk' }, withoutDisk],
    ['dead with nothing left', 'failed', failedWith('guest_panic'), all],
    ['never made', 'failed', failedWith('create_failed'), all],
    ['of a lost host', 'failed', { ...failedWith('host_lost'), wakes_from: 'disk' }, withoutMachine],
    ['of a host that did not answer', 'failed', failedWith('host_unreachable'), withoutMachine],
  ] as const)
    cases.push([what, await api.makeSandbox(status, { host_id: null, ...changes }), held]);

  for (const [what, { id }, held] of cases) {
    await api.db.updateTable('sandbox').set({ host_id: 'a' }).where('id', '=', id).execute();
    await destroy(id);
    assert.deepEqual(await free(), held, what);
    const deleted = await api.db.transaction().execute((trx) =>
      transitionSandbox(trx, {
        sandboxId: id,
        epoch: 2,
        to: 'deleted',
        actor: { kind: 'system', id: null, userId: null },
      }),
    );
    assert.equal(deleted.outcome, 'changed');
    assert.deepEqual(await free(), all, what);
  }
});

test('an asleep sandbox frees vCPUs and memory and keeps its disk; a wake needs its own host', async () => {
  await addHost('a', 1, 100, 15);
  const asleep = await api.makeSandbox('stopped', { host_id: 'a' });
  // Its disk and its snapshot stay reserved: no capacity for another one.
  assert.match((await create()).body.error.message, /needs 12 GiB of disk \(snapshot included\), at most 3 free/);
  await addHost('a', 1, 100, 500);
  assert.equal((await create()).status, 201);
  await addHost('b', 64, 100, 500);
  const refused = await verb(asleep.id, 'wake');
  assert.deepEqual([refused.status, refused.body.error.code], [503, 'insufficient_capacity']);
  assert.match(
    refused.body.error.message,
    /needs 1 vCPU, 0 are free\. The operator can raise the limit with --cpu-overcommit/,
  );
  assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/);
  assert.equal((await rows()).find(({ id }) => id === asleep.id)?.status, 'stopped');
  await addHost('a', 2, 100, 500);
  assert.equal((await verb(asleep.id, 'wake')).body.sandbox.status, 'waking');
});

test('concurrent wakes never promise more than the capacity', async () => {
  await addHost('a', 3, 100, 500);
  const asleep = await Promise.all(Array.from({ length: 8 }, () => api.makeSandbox('stopped', { host_id: 'a' })));
  const answers = await Promise.all(asleep.map(({ id }) => verb(id, 'wake')));
  assert.deepEqual(
    [200, 503].map((wanted) => answers.filter(({ status }) => status === wanted).length),
    [3, 5],
  );
});

test('a wake reserves the pending allocation', async () => {
  await addHost('a', 4, 100, 500);
  const pending = { pending_vcpu: 4, pending_memory_gb: 1, pending_disk_gb: 10 };
  const first = await api.makeSandbox('stopped', { host_id: 'a', ...pending });
  assert.equal((await verb(first.id, 'wake')).status, 200);
  assert.match((await create()).body.error.message, /needs 1 vCPU|at most 0 free/);
});

test('a wake on a host without a recent heartbeat is 503 host_unavailable', async () => {
  await addHost('a', 4, 100, 500);
  const { id } = await api.makeSandbox('stopped', { host_id: 'a' });
  await sql`update host set last_seen_at = now() - interval '1 minute'`.execute(api.db);
  assert.equal((await verb(id, 'wake')).body.error.code, 'host_unavailable');
});

test('a live growth reserves capacity; without it the growth waits for the next wake', async () => {
  await addHost('a', 4, 100, 500);
  const { id } = await api.makeSandbox('ready', { host_id: 'a' });
  api.steps.length = 0;
  assert.equal((await verb(id, 'resize', { vcpu: 4 })).status, 200);
  assert.deepEqual(
    api.steps.map(({ kind }) => kind),
    ['resize'],
  );
  assert.equal((await create()).status, 503);

  await api.db
    .updateTable('sandbox')
    .set({ resizing: false, pending_vcpu: null, pending_memory_gb: null, pending_disk_gb: null })
    .execute();
  assert.equal((await create()).status, 201);
  const deferred = (await verb(id, 'resize', { vcpu: 4, memoryGb: 2 })).body.sandbox;
  assert.deepEqual(deferred.pendingAllocation, { vcpu: 4, memoryGb: 2, diskGb: 10 });
  assert.equal(api.steps.filter(({ kind }) => kind === 'resize').length, 1);
  assert.equal((await create()).status, 201);
  const events = await api.db
    .selectFrom('activity')
    .select(['kind', 'details'])
    .where('sandbox_id', '=', id)
    .orderBy('at')
    .execute();
  assert.equal(events.at(-1)?.kind, 'sandbox_resize_deferred');
  assert.match(JSON.stringify(events.at(-1)?.details), /needs 4 vCPU, 3 are free/);
});

test('a host without a recent heartbeat receives no sandbox; without another it is 503', async () => {
  await addHost('a', 10, 100, 500);
  await api.db
    .updateTable('host')
    .set({ last_seen_at: sql<Date>`now() - interval '1 minute'` })
    .execute();
  const answer = await create();
  assert.equal(answer.body.error.code, 'host_unavailable');
  assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/);
  await addHost('b', 1, 100, 500);
  assert.equal((await create()).status, 201);
  assert.equal((await rows())[0]?.host_id, 'b');
});
