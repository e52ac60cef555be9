// The lifecycle through the real services and durable work in a separate process, with a real
// PostgreSQL and a stand-in host.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { sql } from 'kysely';
import { untilTrue } from '../../../../os/test/until.ts';
import type { Replica } from '../replica.ts';
import { openWorld, type World } from '../world.ts';

const HOST_TIMEOUT_MS = 1_500;
const NEVER_MS = 600_000;

let world: World;
before(async () => {
  world = await openWorld();
});
after(() => world.close());
afterEach(() => world.calm());

const startReplica = (options: Partial<typeof world.replica> = {}): Promise<Replica> =>
  world.start({ hostTimeoutMs: HOST_TIMEOUT_MS, ...options });

test('a create returns ready and a destroy deleted, each with one host call', async () => {
  const replica = await startReplica();
  const created = await replica.ask('create');
  assert.equal(created.status, 'ready');
  const destroyed = await replica.ask('destroy', { sandboxId: created.id });
  assert.equal(destroyed.status, 'deleted');
  assert.deepEqual(world.host.calls, [
    { verb: 'PUT', id: created.id, epoch: 1 },
    { verb: 'DELETE', id: created.id, epoch: 2 },
  ]);
});

test('a step seen by both poll and commit start runs once, among two replicas', async () => {
  const [one, other] = await Promise.all([startReplica({ queuePollMs: 5 }), startReplica({ queuePollMs: 5 })]);
  world.host.createMs = 20;
  const created = await Promise.all(
    Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? one : other).ask('create')),
  );
  assert.deepEqual(new Set(created.map(({ status }) => status)), new Set(['ready']));
  for (const { id } of created) assert.equal(world.host.calls.filter((call) => call.id === id).length, 1);
});

test("a step not started after its commit is started by any replica's poll", async () => {
  const silent = await startReplica({ startAtOnce: false, queuePollMs: NEVER_MS });
  await startReplica({ queuePollMs: 50 });
  const { id } = await silent.ask('create', { respondAsync: true });
  await world.until(id, (row) => row.status === 'ready');
});

test('a live replica takes over the step of a killed one, and the VM is created once', async () => {
  const [killed] = [await startReplica(), await startReplica()];
  world.host.createMs = 600;
  const { id } = await killed.ask('create', { respondAsync: true });
  await untilTrue('the create reached the host', () => world.host.calls.length === 1);
  await killed.kill();
  await world.until(id, (row) => row.status === 'ready');
  assert.equal(world.host.made.get(id), 1);
});

test('a replica that stops leaves its unfinished step to the next', async () => {
  const stopped = await startReplica();
  world.host.createMs = 60_000;
  const { id } = await stopped.ask('create', { respondAsync: true });
  await untilTrue('the create reached the host', () => world.host.calls.length === 1);
  await stopped.stop();
  assert.equal((await world.until(id, () => true)).status, 'provisioning');
  const next = await startReplica();
  await untilTrue('the next one asked the host', () => world.host.calls.length === 2);
  assert.equal((await next.ask('destroy', { sandboxId: id })).status, 'deleted');
});

test('a destroy overtakes a create in progress and leaves no VM', async () => {
  const replica = await startReplica();
  world.host.createMs = 60_000;
  const { id } = await replica.ask('create', { respondAsync: true });
  await untilTrue('the create reached the host', () => world.host.calls.length === 1);
  const destroyed = await replica.ask('destroy', { sandboxId: id });
  assert.equal(destroyed.status, 'deleted');
  assert.deepEqual(world.host.alive(id), []);
  const kinds = await world.db
    .selectFrom('activity')
    .select('kind')
    .where('sandbox_id', '=', id)
    .orderBy('at')
    .execute();
  assert.deepEqual(
    kinds.map((row) => row.kind),
    ['sandbox_created', 'sandbox_destroy_requested', 'sandbox_deleted'],
  );
});

test('a create and a destroy wait for an absent host', async () => {
  const replica = await startReplica({ hostTimeoutMs: 60_000 });
  await world.host.stop();
  const { id } = await replica.ask('create', { respondAsync: true });
  await untilTrue('the host was missed', () => replica.log.includes('creating a VM: retrying'));
  assert.equal((await world.until(id, () => true)).status, 'provisioning');
  await world.host.start();
  await world.until(id, (row) => row.status === 'ready');

  await world.host.stop();
  assert.equal((await replica.ask('destroy', { sandboxId: id, respondAsync: true })).status, 'destroying');
  await untilTrue('the host was missed', () => replica.log.includes('deleting a VM: retrying'));
  assert.equal((await world.until(id, () => true)).status, 'destroying');
  await world.host.start();
  await world.until(id, (row) => row.status === 'deleted');
  assert.deepEqual(world.host.alive(id), []);
});

test('a create fails as host_unreachable if the host stays away; a late VM is destroyed', async () => {
  const replica = await startReplica();
  await world.host.stop();
  const { id } = await replica.ask('create', { respondAsync: true });
  const row = await world.until(id, ({ status }) => status === 'failed');
  assert.equal(row.status_reason_code, 'host_unreachable');
  assert.equal(row.epoch, 2);
  // The response was lost, not the request: the host created the VM.
  world.host.addVm(id, 1, { vcpu: 1, memoryMib: 1024, diskGib: 10, hostname: 'late', sshAuthorizedKeys: [] });
  await world.host.start();
  await untilTrue('it was destroyed', () => world.host.alive(id).length === 0);
});

test("a host's refusal fails the sandbox with the host's code", async () => {
  const replica = await startReplica();
  world.host.refuseCreates.push(
    { code: 'create_failed', message: 'the guest did not answer within 20 s' },
    {
      code: 'insufficient_capacity',
      message: 'not enough memory',
      shortage: { resource: 'memoryMib', requested: 1024, available: 512 },
    },
  );
  for (const code of ['create_failed', 'insufficient_capacity']) {
    const { id, status } = await replica.ask('create');
    assert.equal(status, 'failed');
    assert.equal((await world.until(id, () => true)).status_reason_code, code);
    assert.equal((await replica.ask('destroy', { sandboxId: id })).status, 'deleted');
  }
});

test('a host failure without a decision is retried', async () => {
  const replica = await startReplica();
  world.host.refuseCreates.push({ code: 'internal', message: 'out of file descriptors' });
  assert.equal((await replica.ask('create')).status, 'ready');
});

test('steps continue when PostgreSQL is killed and restarts meanwhile', async () => {
  const replica = await startReplica({ hostTimeoutMs: 60_000 });
  const ids: string[] = [];
  for (const createMs of [0, 30, 400]) {
    world.host.createMs = createMs;
    const created = await Promise.all(Array.from({ length: 8 }, () => replica.ask('create', { respondAsync: true })));
    ids.push(...created.map((answer) => answer.id));
    await world.postgres.kill();
    await world.postgres.start();
  }
  for (const id of ids) {
    await world.until(id, (row) => row.status === 'ready', 60_000);
    assert.equal(world.host.made.get(id), 1);
  }
  const destroyed = await Promise.all(ids.map((id) => replica.ask('destroy', { sandboxId: id, respondAsync: true })));
  assert.equal(destroyed.length, ids.length);
  await world.postgres.kill();
  await world.postgres.start();
  for (const id of ids) await world.until(id, (row) => row.status === 'deleted', 60_000);
  assert.deepEqual(
    ids.flatMap((id) => world.host.alive(id)),
    [],
  );
});

test('a step that was claimed and never started starts after a while', async () => {
  const replica = await startReplica({ startAtOnce: false });
  const { id } = await replica.ask('create', { respondAsync: true });
  await sql`
    update durable_step set claimed_by = ${replica.executorId}
    where id = ${`provision:${id}:1`} and claimed_by is null`.execute(world.db);
  await world.until(id, (row) => row.status === 'ready', 30_000);
});

test('a transitional sandbox without a step gets one', async () => {
  const silent = await startReplica({ startAtOnce: false, queuePollMs: NEVER_MS });
  const { id } = await silent.ask('create', { respondAsync: true });
  await world.db.deleteFrom('durable_step').where('id', '=', `provision:${id}:1`).execute();
  await sql`update sandbox set updated_at = now() - interval '1 minute' where id = ${id}`.execute(world.db);
  await world.until(id, (row) => row.status === 'ready', 30_000);
});

test('a step whose commit fails is retried until its sandbox is settled', async () => {
  const replica = await startReplica();
  await sql`alter table sandbox add constraint never_ready check (status <> 'ready') not valid`.execute(world.db);
  const { id } = await replica.ask('create', { respondAsync: true });
  await untilTrue('the commit failed', () => replica.log.includes('settling a provision step: retrying'));
  assert.equal((await world.until(id, () => true)).status, 'provisioning');
  await sql`alter table sandbox drop constraint never_ready`.execute(world.db);
  await world.until(id, (row) => row.status === 'ready', 30_000);
});
