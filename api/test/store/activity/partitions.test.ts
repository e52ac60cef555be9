// Partitions of the activity feed: cover all of time, are added ahead and dropped when old.
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { sql } from 'kysely';
import {
  addActivityPartition,
  dropActivityPartitions,
  listActivityPartitions,
} from '../../../src/store/activity/partitions.ts';
import { openDatabase } from '../../../src/store/database/database.ts';
import type { Database } from '../../../src/store/database/schema.ts';
import { layOutPartitions, month, partitionName } from './layout.ts';
import { startPostgres, type TestPostgres } from '../../world/database.ts';

const DAY_MS = 86_400_000;
let postgres: TestPostgres;
let db: Database;
before(async () => {
  postgres = await startPostgres();
});
after(() => postgres.stop());
beforeEach(async () => {
  const url = await postgres.createMigratedDatabase();
  ({ db } = openDatabase({ url, maxConnections: 8, statementTimeoutMs: 30_000, onIdleError: () => undefined }));
  await sql`insert into org (id, name) values ('org_a', 'A')`.execute(db);
});
afterEach(() => db.destroy());

const layOut = (bounds: readonly number[]): Promise<void> => layOutPartitions(db, bounds.map(month));

async function insertAt(at: Date, in_: Database = db): Promise<void> {
  await sql`
    insert into activity (id, org_id, actor_kind, kind, subject_kind, subject_id, at)
    values (gen_random_uuid(), 'org_a', 'operator', 'org_created', 'org', 'org_a', ${at})`.execute(in_);
}

const entries = async (): Promise<number> => {
  const { count } = await db
    .selectFrom('activity')
    .select((eb) => eb.fn.countAll<string>().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
};

/** Asserts that the partitions have no gap and no end. Returns their bounds. */
async function bounds(): Promise<(Date | null)[]> {
  const found = await listActivityPartitions(db);
  assert.deepEqual(
    found.map(({ from }) => from),
    [null, ...found.slice(0, -1).map(({ to }) => to)],
  );
  assert.equal(found.at(-1)?.to, null);
  return found.map(({ from }) => from);
}

test('the next month gets a partition two weeks ahead; a second run adds none', async () => {
  await layOut([0]);
  assert.equal(await addActivityPartition(db), partitionName(month(1)));
  assert.deepEqual(await bounds(), [null, month(0), month(1)]);
  const isNear = month(1).getTime() < Date.now() + 14 * DAY_MS;
  assert.equal((await addActivityPartition(db)) === null, !isNear);
  assert.equal(await addActivityPartition(db), null);
});

test('entries of any time are accepted, before and after each change', async () => {
  const all = ['1970-01-01', '2020-02-29', '2999-12-31'].map((text) => new Date(text));
  for (const at of all) await insertAt(at);
  await layOut([-9, -8, 0]);
  for (const at of [...all.slice(0, 2), month(-9), month(0)]) await insertAt(at);
  await addActivityPartition(db);
  await dropActivityPartitions(db, 90);
  await bounds();
  for (const at of all) await insertAt(at);
  assert.equal(await entries(), 4);
});

test('entries written while no replica added partitions stay, also those of the future', async () => {
  await layOut([-5]);
  for (const at of [month(-4), new Date(), new Date(Date.now() + 400 * DAY_MS)]) await insertAt(at);
  assert.notEqual(await addActivityPartition(db), null);
  const found = await bounds();
  assert.equal(found.length, 3);
  assert.ok((found[2]?.getTime() ?? 0) > Date.now() + 400 * DAY_MS);
  assert.equal(await entries(), 3);
  assert.equal(await addActivityPartition(db), null);
});

test('concurrent replicas add a partition once, while entries are inserted', async () => {
  await layOut([-1]);
  const added = Promise.allSettled(Array.from({ length: 4 }, () => addActivityPartition(db)));
  await Promise.all(Array.from({ length: 40 }, () => insertAt(new Date())));
  const names = (await added).flatMap((one) => {
    if (one.status === 'fulfilled') return one.value === null ? [] : [one.value];
    // The replica gave up waiting; the next run tries again.
    assert.equal((one.reason as { code?: string }).code, '55P03');
    return [];
  });
  assert.equal(new Set(names).size, names.length);
  assert.ok(names.length > 0 || (await addActivityPartition(db)) !== null);
  await bounds();
  assert.equal(await entries(), 40);
});

test('a change that must wait for a reader gives up and leaves the feed as it was', async () => {
  await layOut([-9, -8, 0]);
  await db.transaction().execute(async (reader) => {
    await sql`select from activity`.execute(reader);
    for (const change of [() => addActivityPartition(db), () => dropActivityPartitions(db, 90)])
      await assert.rejects(change(), { code: '55P03' });
    await insertAt(new Date());
  });
  assert.deepEqual(await bounds(), [null, month(-9), month(-8), month(0)]);
  assert.notEqual(await addActivityPartition(db), null);
});

test('a change that fails in the middle leaves the feed as it was', async () => {
  await layOut([0]);
  const taken = partitionName(month(1));
  await sql`create table ${sql.table(taken)} ()`.execute(db);
  await assert.rejects(addActivityPartition(db), { code: '42P07' });
  assert.deepEqual(await bounds(), [null, month(0)]);
  await insertAt(new Date());
  await insertAt(month(2));
});

test('partitions past the retention are dropped with their files; younger ones stay', async () => {
  await layOut([-9, -8, -1, 0, 1]);
  for (const months of [-10, -9, -8, -1, 0]) await insertAt(month(months));
  const dropped = await dropActivityPartitions(db, 90);
  assert.equal(dropped.length, 2);
  assert.deepEqual(await bounds(), [null, month(-8), month(-1), month(0), month(1)]);
  assert.equal(await entries(), 3);
  assert.deepEqual(await dropActivityPartitions(db, 90), []);
  // Written by a clock that jumped back.
  await insertAt(month(-20));
  assert.deepEqual(await dropActivityPartitions(db, 90), ['activity_first']);
  assert.equal(await entries(), 3);
});

test('no partition is dropped before the last of its entries is old enough', async () => {
  await layOut([-3, 0]);
  const days = Math.ceil((Date.now() - month(0).getTime()) / DAY_MS) + 1;
  await insertAt(month(-3));
  assert.deepEqual(await dropActivityPartitions(db, days), []);
  assert.equal(await entries(), 1);
});

/** Ends the connection of the DDL statement with this number, counted from 1. */
async function killAt(statement: number): Promise<void> {
  await sql`drop event trigger if exists killer`.execute(db);
  await sql`drop sequence if exists statements`.execute(db);
  await sql`create sequence statements`.execute(db);
  await sql`
    create or replace function kill() returns event_trigger language plpgsql as $$ begin
      if nextval('statements') = ${sql.lit(statement)} then perform pg_terminate_backend(pg_backend_pid()); end if;
    end $$`.execute(db);
  await sql`create event trigger killer on ddl_command_end execute function kill()`.execute(db);
}

test('a change that dies at any of its statements changes nothing; the next run completes it', async () => {
  const changes = [
    { run: () => addActivityPartition(db), statements: 3, kept: 2, left: [null, month(-2), month(0), month(1)] },
    { run: () => dropActivityPartitions(db, 31), statements: 2, kept: 1, left: [null, month(-2), month(0)] },
  ];
  for (const { run, statements, kept, left } of changes) {
    await layOut([-2, 0]);
    await insertAt(new Date(month(-2).getTime() - DAY_MS));
    await insertAt(new Date());
    const before = await bounds();
    for (let statement = 1; statement <= statements; statement += 1) {
      await killAt(statement);
      await assert.rejects(run, /terminating connection|Connection terminated/);
      assert.deepEqual([await bounds(), await entries()], [before, 2], `statement ${statement}`);
    }
    await killAt(statements + 1);
    await run();
    await sql`drop event trigger killer`.execute(db);
    assert.deepEqual([await bounds(), await entries()], [left, kept]);
    await insertAt(new Date());
    await insertAt(month(-2));
  }
});
