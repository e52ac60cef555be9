// The rollup worker: replicas killed at every point, several at once, and its passes.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'kysely';
import pino from 'pino';
import { cutUsageAt, lockUsageSums } from '../../../src/store/usage/rollup.ts';
import { usedMs } from '../../../src/store/usage/sums.ts';
import { CRASH_POINTS } from '../../../src/workers/steps/crash-point.ts';
import { pointsOf } from '../../../../os/test/crash-points.ts';
import { rollUpAllUsage, rollUpOrgUsage } from '../../../src/workers/usage/rollup.ts';
import { Replica } from '../replica.ts';
import { openWorld, type World } from '../world.ts';
import { deadlineOf } from '../../../../os/test/until.ts';

let world: World;
let orgId: string;
before(async () => {
  world = await openWorld();
  orgId = world.replica.orgId;
});
after(() => world.close());

/** More than two batches of the worker. */
const MANY = 12_000;

/**
 * Closed intervals of up to a day in the last week, by several projects, end users and sizes.
 * Random, but of the same seed each time.
 */
async function addIntervals(count: number, org = orgId): Promise<void> {
  await world.db.transaction().execute(async (trx) => {
    await sql`select setseed(0.5)`.execute(trx);
    await sql`
      insert into usage_interval (id, sandbox_id, org_id, project_id, end_user_id, vcpu, memory_gb, disk_gb, during)
      select gen_random_uuid(), gen_random_uuid(), ${org}, 'prj_' || n % 3, nullif('user ' || n % 5, 'user 0'),
        1 + n % 2, 2, 10,
        tstzrange(begins, begins + random() * interval '1 day')
      from (select n, now() - interval '8 days' + random() * interval '7 days' as begins
        from generate_series(1, ${count}::integer) n) made`.execute(trx);
  });
}

/** By day, by period and from the intervals themselves. */
async function assertEachOnce(org = orgId): Promise<void> {
  const { rows } = await sql<{ raw: string; byDay: string; byPeriod: string; periods: number }>`
    select
      (select coalesce(sum((extract(epoch
            from date_trunc('milliseconds', upper(during)) - date_trunc('milliseconds', lower(during))
          ) * 1000)::bigint), 0)
        from usage_interval where org_id = ${org} and not upper_inf(during)
          and id not in (select interval_id from usage_unrolled)) as raw,
      (select coalesce(sum(ms), 0) from usage_total where org_id = ${org} and level = 'day') as "byDay",
      (select coalesce(sum(ms), 0) from usage_total where org_id = ${org} and level = 'period') as "byPeriod",
      (select count(*)::integer from usage_span where org_id = ${org} and level = 'period') as periods`.execute(
    world.db,
  );
  const { raw, byDay, byPeriod, periods } = rows[0] ?? { raw: '', byDay: '-', byPeriod: '-', periods: 0 };
  assert.equal(byDay, raw);
  // Usage before the first cut is in no period.
  if (periods > 0) assert.ok(BigInt(byPeriod) <= BigInt(raw));
}

async function unrolled(): Promise<number> {
  const { count } = await world.db
    .selectFrom('usage_unrolled')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
}

async function untilRolledUp(): Promise<void> {
  const deadline = Date.now() + deadlineOf(30_000);
  while ((await unrolled()) > 0) {
    assert.ok(Date.now() < deadline, `${await unrolled()} intervals are in no sum`);
    await delay(50);
  }
}

const POINTS = pointsOf(CRASH_POINTS, 'rollup:');

for (const point of POINTS.flatMap((name) => [name, `${name}#2`])) {
  test(`a replica killed at ${point} counts nothing twice, and the next counts the rest`, async () => {
    await addIntervals(MANY);
    const total = await unrolled();
    const ended = await Replica.start(world.replica, point).then(
      (replica) => replica.ended,
      (error: Error) => /SIGKILL/.exec(error.message)?.[0],
    );
    assert.equal(ended, 'SIGKILL');
    const left = await unrolled();
    assert.ok(left > 0 && left <= total);
    await assertEachOnce();
    const next = await Replica.start(world.replica);
    await untilRolledUp();
    await next.stop();
    await assertEachOnce();
  });
}

test('two replicas count every interval once', async () => {
  await addIntervals(MANY);
  const replicas = await Promise.all([Replica.start(world.replica), Replica.start(world.replica)]);
  await untilRolledUp();
  await Promise.all(replicas.map((replica) => replica.stop()));
  await assertEachOnce();
});

test('concurrent rollups of an org count everything once while intervals close and days are split', async () => {
  const busy = 'org_busy';
  await world.db.insertInto('org').values({ id: busy, name: busy }).execute();
  await addIntervals(2_000, busy);
  const window = {
    orgId: busy,
    from: new Date(Date.now() - 30 * 86_400_000),
    to: new Date(Date.now() + 86_400_000),
    at: new Date(),
  };
  const done = new AbortController();
  let before = await usedMs(world.db, window);
  const rollUp = async (): Promise<void> => {
    while (!done.signal.aborted) await rollUpOrgUsage(world.db, busy, 37);
  };
  const cut = async (): Promise<void> => {
    for (let hours = 1; hours <= 40; hours += 1) {
      const at = new Date(Date.now() - hours * 3_600_000);
      await world.db.transaction().execute(async (trx) => {
        if (await lockUsageSums(trx, busy)) await cutUsageAt(trx, busy, at);
      });
      // A concurrent query finds each interval either in the sums or beside them: usage never
      // decreases.
      const used = await usedMs(world.db, window);
      assert.ok(used >= before, `${used} after ${before}`);
      before = used;
      if (hours % 10 === 0) await addIntervals(200, busy);
    }
  };
  const rolling = [rollUp(), rollUp(), rollUp()];
  try {
    await cut();
  } finally {
    done.abort();
    await Promise.all(rolling);
  }
  while ((await rollUpOrgUsage(world.db, busy, 1_000)) > 0);
  assert.equal(await unrolled(), 0);
  await assertEachOnce(busy);
});

const context = { log: pino({ level: 'silent' }), stopping: new AbortController().signal };
const leads = { isLeader: () => Promise.resolve(true) };

test('one pass rolls up every org in batches, and only at the leader', async () => {
  for (const org of ['org_first', 'org_second']) {
    await world.db.insertInto('org').values({ id: org, name: org }).execute();
    await addIntervals(25, org);
  }
  await rollUpAllUsage({ db: world.db, ...context }, { isLeader: () => Promise.resolve(false) }, 10);
  assert.equal(await unrolled(), 50);
  await rollUpAllUsage({ db: world.db, ...context }, leads, 10);
  assert.equal(await unrolled(), 0);
  for (const org of ['org_first', 'org_second']) await assertEachOnce(org);
});

test('a restarted subscription splits the days at its start in the next pass', async () => {
  await addIntervals(500);
  await rollUpAllUsage({ db: world.db, ...context }, leads);
  const startedAt = new Date(Date.now() - 3 * 86_400_000 - 12_345_678);
  await world.db
    .updateTable('subscription')
    .set({ started_at: startedAt, period_anchor: startedAt })
    .where('org_id', '=', orgId)
    .execute();
  await rollUpAllUsage({ db: world.db, ...context }, leads);
  const spans = await world.db
    .selectFrom('usage_span')
    .select('level')
    .where('org_id', '=', orgId)
    .where('starts_at', '=', startedAt)
    .orderBy('level')
    .execute();
  assert.deepEqual(
    spans.map(({ level }) => level),
    ['day', 'period'],
  );
  await assertEachOnce();
});
