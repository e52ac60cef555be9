// Ledger of machine time through the lives of sandboxes: start, end, size, and what outlives them.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { settleResize } from '../../../src/services/sandboxes/resize.ts';
import { transitionSandbox, type Transition } from '../../../src/services/sandboxes/transition.ts';
import type { NewSandbox } from '../../../src/store/database/schema.ts';
import { startApi, type TestApi } from '../../world/api.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

const SYSTEM = { kind: 'system', id: null, userId: null } as const;
async function go(sandboxId: string, to: Transition['to'], more: Partial<Transition> = {}): Promise<void> {
  const reason = to === 'failed' ? { reason: { code: 'x', message: 'y' } } : {};
  const { outcome } = await api.db
    .transaction()
    .execute((trx) => transitionSandbox(trx, { sandboxId, epoch: 1, to, actor: SYSTEM, ...reason, ...more }));
  assert.equal(outcome, 'changed');
}
async function makeAwake(changes: Partial<NewSandbox> = {}): Promise<string> {
  const { id } = await api.makeSandbox('provisioning', changes);
  await go(id, 'ready');
  return id;
}

/** Intervals in order; `gapUs`: microseconds since the end of the previous one. */
async function ledgerOf(sandboxId: string): Promise<{ vcpu: number; open: boolean; gapUs: number | null }[]> {
  const { rows } = await sql<{ vcpu: number; open: boolean; gapUs: number | null }>`
    select vcpu, upper_inf(during) as open,
      (extract(epoch from lower(during) - lag(upper(during)) over (order by during)) * 1e6)::float8 as "gapUs"
    from usage_interval where sandbox_id = ${sandboxId} order by during`.execute(api.db);
  return rows;
}

test('each awake stretch is one interval, whatever happens in between', async () => {
  const id = await makeAwake();
  await go(id, 'sleeping');
  await go(id, 'stopped');
  await go(id, 'waking');
  await go(id, 'running');
  await go(id, 'ready');
  assert.deepEqual(
    (await ledgerOf(id)).map(({ open }) => open),
    [false, true],
  );
});

test('an always_on sandbox is metered without gaps from create to destroy', async () => {
  const id = await makeAwake({ persistence_policy: 'always_on' });
  await go(id, 'destroying');
  await go(id, 'deleted');
  const { rows } = await sql<{ createdToBegin: boolean; endToDestroy: boolean; count: number }>`
    select count(*) over ()::integer as count,
      lower(during) >= date_trunc('milliseconds', (select created_at from sandbox where id = ${id}))
        as "createdToBegin",
      upper(during) <= clock_timestamp() and upper(during) >= date_trunc('milliseconds',
        (select min(at) from activity where sandbox_id = ${id} and kind = 'sandbox_destroy_requested'))
        as "endToDestroy"
    from usage_interval where sandbox_id = ${id}`.execute(api.db);
  assert.deepEqual(rows, [{ count: 1, createdToBegin: true, endToDestroy: true }]);
});

test('a live resize ends an interval and starts the next at the same instant with the new size', async () => {
  const id = await makeAwake();
  await sql`
    update sandbox set resizing = true, pending_vcpu = 2, pending_memory_gb = 4, pending_disk_gb = 10
    where id = ${id}`.execute(api.db);
  const verified = { vcpu: 2, memoryGb: 4, diskGb: 10 };
  assert.equal(
    await api.db
      .transaction()
      .execute((trx) => settleResize(trx, { sandboxId: id, epoch: 1, verified, deferred: null })),
    'changed',
  );
  assert.deepEqual(await ledgerOf(id), [
    { vcpu: 1, open: false, gapUs: null },
    { vcpu: 2, open: true, gapUs: 0 },
  ]);
});

test('a live resize without effect continues the interval', async () => {
  const id = await makeAwake();
  await sql`
    update sandbox set resizing = true, pending_vcpu = 2, pending_memory_gb = 4, pending_disk_gb = 10
    where id = ${id}`.execute(api.db);
  await api.db
    .transaction()
    .execute((trx) => settleResize(trx, { sandboxId: id, epoch: 1, verified: null, deferred: null }));
  assert.deepEqual(await ledgerOf(id), [{ vcpu: 1, open: true, gapUs: null }]);
});

test('metered time of a lost VM ends at its last proof of life, to the millisecond', async () => {
  const id = await makeAwake();
  await sql`
    update usage_interval set during = tstzrange(now() - interval '2 hours', null)
    where sandbox_id = ${id}`.execute(api.db);
  const lastAliveAt = new Date(Date.now() - 3_600_000);
  await go(id, 'failed', { lastAliveAt });
  const { rows } = await sql<{
    ends: Date;
  }>`select upper(during) as ends from usage_interval where sandbox_id = ${id}`.execute(api.db);
  assert.deepEqual(rows, [{ ends: lastAliveAt }]);
});

test('an ephemeral sandbox that ends late is metered up to its time to live only', async () => {
  const expiresAt = new Date(Date.now() - 60_000);
  const id = await makeAwake({ mode: 'ephemeral', ttl_seconds: 60, expires_at: expiresAt });
  await sql`
    update usage_interval set during = tstzrange(now() - interval '2 hours', null)
    where sandbox_id = ${id}`.execute(api.db);
  await go(id, 'destroying');
  const { rows } = await sql<{
    ends: Date;
  }>`select upper(during) as ends from usage_interval where sandbox_id = ${id}`.execute(api.db);
  assert.deepEqual(rows, [{ ends: expiresAt }]);
});

test('an ephemeral sandbox that wakes after its time to live is metered for zero time', async () => {
  const id = await makeAwake({ mode: 'ephemeral', ttl_seconds: 60, expires_at: new Date(Date.now() - 60_000) });
  await go(id, 'destroying');
  const { rows } = await sql<{ beginsWhole: boolean; takesUs: number }>`
    select lower(during) = date_trunc('milliseconds', lower(during)) as "beginsWhole",
      (extract(epoch from upper(during) - lower(during)) * 1e6)::float8 as "takesUs"
    from usage_interval where sandbox_id = ${id}`.execute(api.db);
  assert.deepEqual(rows, [{ beginsWhole: true, takesUs: 1 }]);
});

test('a resize verified after the time to live bills nothing beyond it', async () => {
  const expiresAt = new Date(Date.now() - 60_000);
  const id = await makeAwake({ mode: 'ephemeral', ttl_seconds: 60, expires_at: expiresAt });
  await sql`
    update usage_interval set during = tstzrange(now() - interval '2 hours', null)
    where sandbox_id = ${id}`.execute(api.db);
  await sql`
    update sandbox set resizing = true, pending_vcpu = 2, pending_memory_gb = 4, pending_disk_gb = 10
    where id = ${id}`.execute(api.db);
  const verified = { vcpu: 2, memoryGb: 4, diskGb: 10 };
  await api.db.transaction().execute((trx) => settleResize(trx, { sandboxId: id, epoch: 1, verified, deferred: null }));
  await go(id, 'destroying');
  const { rows } = await sql<{ ends: Date }>`
    select date_trunc('milliseconds', max(upper(during))) as ends from usage_interval where sandbox_id = ${id}`.execute(
    api.db,
  );
  assert.deepEqual(rows, [{ ends: expiresAt }]);
  assert.deepEqual(
    (await ledgerOf(id)).map(({ vcpu, open }) => [vcpu, open]),
    [
      [1, false],
      [2, false],
    ],
  );
});

test('org, project, end user and size are copied into an interval and outlive sandbox and project', async () => {
  const session = await api.makeSession({ role: 'owner' });
  const { body } = await api.call('POST', `/v1/orgs/${api.orgId}/projects`, { body: { name: 'to go' } });
  const projectId: string = body.project.id;
  const id = await makeAwake({
    project_id: projectId,
    end_user_id: 'customer 7',
    allocated_vcpu: 4,
    allocated_memory_gb: 8,
    allocated_disk_gb: 40,
  });
  await go(id, 'destroying');
  await go(id, 'deleted');
  assert.equal(
    (await api.call('DELETE', `/v1/orgs/${api.orgId}/projects/${projectId}`, { token: session.token })).status,
    200,
  );
  await sql`delete from sandbox where id = ${id}`.execute(api.db);
  const rows = await api.db
    .selectFrom('usage_interval')
    .select(['org_id', 'project_id', 'end_user_id', 'vcpu', 'memory_gb', 'disk_gb'])
    .where('sandbox_id', '=', id)
    .execute();
  assert.deepEqual(rows, [
    { org_id: api.orgId, project_id: projectId, end_user_id: 'customer 7', vcpu: 4, memory_gb: 8, disk_gb: 40 },
  ]);
});

test('a closed interval is queued for the sums, and the database refuses to alter or delete it', async () => {
  const id = await makeAwake();
  const unrolled = async (): Promise<number> =>
    (
      await api.db
        .selectFrom('usage_unrolled')
        .innerJoin('usage_interval', 'usage_interval.id', 'usage_unrolled.interval_id')
        .select('interval_id')
        .where('sandbox_id', '=', id)
        .execute()
    ).length;
  assert.equal(await unrolled(), 0);
  await go(id, 'sleeping');
  assert.equal(await unrolled(), 1);
  for (const statement of [
    sql`
      update usage_interval set during = tstzrange(lower(during), now() + interval '1 hour')
      where sandbox_id = ${id}`,
    sql`update usage_interval set end_user_id = 'another' where sandbox_id = ${id}`,
    sql`delete from usage_interval where sandbox_id = ${id}`,
  ])
    await assert.rejects(statement.execute(api.db), /is closed and does not change/);
});
