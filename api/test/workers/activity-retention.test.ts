// The leader deletes entries of the feed by the plans of their orgs, and whole partitions that no
// plan in use keeps.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SELF_HOSTED_PLAN } from '@berth/contract/billing/plans.ts';
import { sql } from 'kysely';
import { pino } from 'pino';
import { planCatalogueOf } from '../../src/rules/billing/plan-catalogue.ts';
import { deleteOldActivity } from '../../src/store/activity/retention.ts';
import { removeOldRows, renewActivityPartitions } from '../../src/workers/retention.ts';
import { layOutPartitions, month } from '../store/activity/layout.ts';
import { startApi, type TestApi, type TestOrg } from '../world/api.ts';
import { openWatched } from '../world/watched-database.ts';

const MANY = 1_234;
const plan = (id: string, activityRetentionDays: number | null) => ({ ...SELF_HOSTED_PLAN, id, activityRetentionDays });
const PLANS = planCatalogueOf([plan('week', 7), plan('year', 365), plan('forever', null)]);

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

const session = (leads: boolean) => ({ isLeader: () => Promise.resolve(leads) });
const context = (plans = PLANS) => ({
  db: api.db,
  stopping: new AbortController().signal,
  log: pino({ enabled: false }),
  plans,
});

async function orgOn(planId: string): Promise<TestOrg> {
  const org = await api.makeOrg();
  await api.db.updateTable('subscription').set({ plan: planId }).where('org_id', '=', org.orgId).execute();
  return org;
}

async function fill({ orgId }: TestOrg, rows: number, age: string): Promise<void> {
  await sql`
    insert into activity (id, org_id, actor_kind, kind, subject_kind, subject_id, at)
    select gen_random_uuid(), ${orgId}, 'system', ${age}, 'org', ${orgId}, now() - ${age}::interval
    from generate_series(1, ${rows}::int)`.execute(api.db);
}

/** Ages of the entries that {@link fill} wrote and that are left, with their number. */
async function left({ orgId }: TestOrg): Promise<Record<string, number>> {
  const { rows } = await sql<{ kind: string; count: number }>`
    select kind, count(*)::int as count from activity
    where org_id = ${orgId} and kind ~ '^[0-9]' group by kind`.execute(api.db);
  return Object.fromEntries(rows.map(({ kind, count }) => [kind, count]));
}

const partitions = async (): Promise<number> => {
  const { rows } = await sql<{ n: number }>`
    select count(*)::int as n from pg_inherits where inhparent = 'activity'::regclass`.execute(api.db);
  return rows[0]?.n ?? 0;
};

test("entries are deleted by their org's plan in any number of batches; younger ones stay", async () => {
  const [week, usual, year] = [await orgOn('week'), await orgOn('self-hosted'), await orgOn('year')];
  const ages = ['6 days 23 hours', '7 days 1 second', '89 days', '90 days 1 second', '364 days', '365 days 1 second'];
  for (const org of [week, usual, year]) for (const age of ages) await fill(org, 2, age);
  await fill(week, MANY, '8 days');
  await fill(usual, MANY, '91 days');
  await removeOldRows(context(), session(true));
  assert.deepEqual(await left(week), { '6 days 23 hours': 2 });
  assert.deepEqual(await left(usual), { '6 days 23 hours': 2, '7 days 1 second': 2, '89 days': 2 });
  assert.deepEqual(Object.keys(await left(year)).toSorted(), ages.slice(0, 5).toSorted());
});

test('entries of an unlimited plan, of an unknown plan and of no plan are kept', async () => {
  const orgs = [await orgOn('forever'), await orgOn('missing'), await orgOn('self-hosted')];
  await api.db
    .deleteFrom('subscription')
    .where('org_id', '=', orgs[2]?.orgId ?? '')
    .execute();
  for (const org of orgs) await fill(org, 3, '5000 days');
  await removeOldRows(context(), session(true));
  await renewActivityPartitions(context(), session(true));
  for (const org of orgs) assert.deepEqual(await left(org), { '5000 days': 3 });
});

test('a replica that is not the leader deletes nothing and changes no partition', async () => {
  const org = await orgOn('week');
  await fill(org, 3, '8 days');
  const before = await partitions();
  await removeOldRows(context(), session(false));
  await renewActivityPartitions(context(), session(false));
  assert.deepEqual([await left(org), await partitions()], [{ '8 days': 3 }, before]);
});

test('a batch is bounded, takes the oldest entries of an org, and leaves other plans', async () => {
  const [org, other] = [await orgOn('batched'), await orgOn('year')];
  await fill(org, 5, '20 days');
  await fill(org, 5, '30 days');
  await fill(other, 5, '30 days');
  const group = { days: 10, plans: ['batched'] };
  assert.equal(await deleteOldActivity(api.db, group, 7), 7);
  assert.deepEqual(await left(org), { '20 days': 3 });
  assert.equal(await deleteOldActivity(api.db, group, 7), 3);
  assert.equal(await deleteOldActivity(api.db, group, 7), 0);
  assert.deepEqual(await left(other), { '30 days': 5 });
});

test('a batch reads each org by an index, whatever the number of younger entries', async () => {
  const org = await orgOn('indexed');
  await fill(org, 20_000, '1 day');
  await fill(org, 1_000, '20 days');
  await sql`analyze activity`.execute(api.db);
  const { db, queries, explain } = openWatched(api.databaseUrl);
  try {
    await deleteOldActivity(db, { days: 10, plans: ['indexed'] }, 100);
    const query = queries.find(({ sql: text }) => text.includes('delete'));
    assert.ok(query);
    await sql`set enable_sort = off`.execute(db);
    const plan = await explain(query, 'run');
    const read = [...plan.matchAll(/"Actual Rows":([\d.]+)/g)].map(([, count]) => Number(count));
    assert.ok(read.length > 0 && Math.max(...read) <= 100, plan);
    assert.doesNotMatch(plan, /"Node Type":"Seq Scan"[^}]*"Relation Name":"activity/);
  } finally {
    await db.destroy();
  }
});

test('partitions are dropped once they are past the longest retention of the plans in use', async () => {
  await api.db.updateTable('subscription').set({ plan: 'year' }).execute();
  const org = await orgOn('year');
  await api.db.updateTable('subscription').set({ plan: 'week' }).where('org_id', '!=', org.orgId).execute();
  await api.db
    .insertInto('subscription')
    .columns(['org_id', 'plan', 'status'])
    .expression((eb) =>
      eb
        .selectFrom('org')
        .select(['id', eb.val('week').as('plan'), eb.val('active' as const).as('status')])
        .where('id', 'not in', eb.selectFrom('subscription').select('org_id')),
    )
    .execute();
  await layOutPartitions(api.db, [month(-3), month(0)]);
  await fill(org, 3, '200 days');
  await renewActivityPartitions(context(), session(true));
  assert.deepEqual([await left(org), await partitions()], [{ '200 days': 3 }, 4]);
  await api.db.updateTable('subscription').set({ plan: 'week' }).where('org_id', '=', org.orgId).execute();
  await renewActivityPartitions(context(), session(true));
  assert.deepEqual(await left(org), {});
});
