// The cap watch in real replica processes: killed at each step, and two on one database.
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { sql } from 'kysely';
import { untilTrue } from '../../../../os/test/until.ts';
import type { Replica } from '../replica.ts';
import { openWorld, type World } from '../world.ts';

let world: World;
before(async () => {
  world = await openWorld();
});
after(() => world.close());
beforeEach(async () => {
  await world.db.deleteFrom('activity').execute();
  // A period of the test's own.
  await sql`
    update subscription set
      started_at = date_trunc('milliseconds', clock_timestamp()),
      period_anchor = date_trunc('milliseconds', clock_timestamp()),
      machine_hour_limit = null, overage_enabled = false`.execute(world.db);
});
afterEach(async () => {
  await setCap(null);
  const replica = await startReplica();
  const left = await world.db.selectFrom('sandbox').select('id').where('status', '<>', 'deleted').execute();
  for (const { id } of left) await replica.ask('destroy', { sandboxId: id });
  for (const { id } of left) await world.until(id, ({ status }) => status === 'deleted');
  await world.calm();
});

const startReplica = (capGraceSeconds = 0, crashAt?: string): Promise<Replica> =>
  world.start({ capGraceSeconds }, crashAt);
const setCap = (hours: number | null): Promise<unknown> =>
  world.db
    .updateTable('subscription')
    .set({ machine_hour_limit: hours })
    .where('org_id', '=', world.replica.orgId)
    .execute();
const kindsOf = async (id: string): Promise<string[]> => {
  const rows = await world.db
    .selectFrom('activity')
    .select('kind')
    .where('sandbox_id', '=', id)
    .orderBy('seq')
    .execute();
  return rows.map(({ kind }) => kind);
};
const percents = async (): Promise<number[]> => {
  const { rows } = await sql<{ percent: number }>`
    select (details ->> 'percent')::int as percent from activity where kind = 'usage_cap_warning' order by seq`.execute(
    world.db,
  );
  return rows.map(({ percent }) => percent);
};
const intervalsOf = async (id: string): Promise<{ open: number; closed: number }> => {
  const rows = await world.db.selectFrom('usage_interval').select('during').where('sandbox_id', '=', id).execute();
  const open = rows.filter(({ during }) => during.endsWith(',)')).length;
  return { open, closed: rows.length - open };
};

/** Asserts that it was put to sleep once, its VM is released and its metering ended. */
async function assertAsleep(id: string): Promise<void> {
  await world.until(id, ({ status }) => status === 'stopped');
  assert.deepEqual(await kindsOf(id), [
    'sandbox_created',
    'sandbox_ready',
    'sandbox_sleep_requested',
    'sandbox_stopped',
  ]);
  assert.deepEqual(world.host.alive(id), []);
  assert.deepEqual(await intervalsOf(id), { open: 0, closed: 1 });
}

for (const point of [
  'caps:warned',
  'caps:reached-noted',
  'sleep:enqueued',
  'caps:slept',
  'caps:slept#2',
  'sleep:answered',
]) {
  test(`after a kill at ${point} while a cap stops sandboxes the next replica continues without repeats`, async () => {
    const killed = await startReplica(0, point);
    const ids = [(await killed.ask('create')).id, (await killed.ask('create')).id, (await killed.ask('create')).id];
    await setCap(0);
    assert.equal(await killed.ended, 'SIGKILL');
    await startReplica();
    for (const id of ids) await assertAsleep(id);
    assert.deepEqual(await percents(), [80, 100]);
  });
}

test('of two replicas one stops sandboxes at the cap, each once, and both refuse creates and wakes', async () => {
  const both = [await startReplica(), await startReplica()];
  const created = await Promise.all([...both, ...both, ...both, ...both].map((replica) => replica.ask('create')));
  const [ends = '', always = '', ...sleep] = created.map(({ id }) => id);
  await sql`
    update sandbox
    set mode = 'ephemeral', ttl_seconds = 3600, persistence_policy = 'always_on', expires_at = now() + interval '1 hour'
    where id = ${ends}`.execute(world.db);
  await world.db.updateTable('sandbox').set({ persistence_policy: 'always_on' }).where('id', '=', always).execute();
  await setCap(0);
  for (const id of [always, ...sleep]) await assertAsleep(id);
  await world.until(ends, ({ status }) => status === 'deleted');
  assert.deepEqual(await kindsOf(ends), [
    'sandbox_created',
    'sandbox_ready',
    'sandbox_sleep_requested',
    'sandbox_deleted',
  ]);
  assert.deepEqual(await percents(), [80, 100]);
  const { rows } = await sql<{ sandbox_id: string }>`
    select sandbox_id from activity where kind = 'sandbox_sleep_requested' order by seq`.execute(world.db);
  assert.equal(rows.at(-1)?.sandbox_id, always, 'what is to be always on goes last');
  for (const replica of both) {
    await assert.rejects(replica.ask('create'), /the cap of the org org_\w+ is 0 machine hours/);
    await assert.rejects(replica.ask('wake', { sandboxId: always }), /the cap of the org org_\w+ is 0 machine hours/);
  }
  await setCap(null);
  for (const replica of both) assert.equal((await replica.ask('create')).status, 'ready');
});

test('when the leader is killed within the grace, the other stops sandboxes at its end, not before', async () => {
  const graceSeconds = 3;
  const leader = await startReplica(graceSeconds);
  await startReplica(graceSeconds);
  const { id } = await leader.ask('create');
  await setCap(0);
  const since = async (): Promise<Date | undefined> =>
    (
      await world.db
        .selectFrom('usage_cap_reached')
        .select('since')
        .where('scope_id', '=', world.replica.orgId)
        .executeTakeFirst()
    )?.since;
  await untilTrue('the cap is seen to be reached', async () => (await since()) !== undefined);
  await leader.kill();
  const noted = (await since())?.getTime() ?? Number.NaN;
  const { status_changed_at: askedAt } = await world.until(
    id,
    ({ status }) => status === 'sleeping' || status === 'stopped',
  );
  assert.ok(
    askedAt.getTime() >= noted + graceSeconds * 1_000,
    `${askedAt.getTime() - noted} ms after the cap was seen to be reached`,
  );
  await assertAsleep(id);
  assert.deepEqual(await percents(), [80, 100]);
});
