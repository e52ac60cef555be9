// Migration of an activity table from before partitions.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql, type Kysely } from 'kysely';
import * as identity from '../../../migrations/0001-0020/0001_identity.ts';
import * as sandboxes from '../../../migrations/0001-0020/0002_sandboxes.ts';
import * as records from '../../../migrations/0001-0020/0003_records.ts';
import * as lifecycle from '../../../migrations/0001-0020/0004_lifecycle.ts';
import * as people from '../../../migrations/0001-0020/0005_people.ts';
import * as activityProjectKind from '../../../migrations/0001-0020/0015_activity_project_kind.ts';
import * as activityPartitions from '../../../migrations/0001-0020/0020_activity_partitions.ts';
import { insertActivity } from '../../../src/store/activity/activity.ts';
import { listActivityPartitions } from '../../../src/store/activity/partitions.ts';
import { openDatabase } from '../../../src/store/database/database.ts';
import type { Database } from '../../../src/store/database/schema.ts';
import { startPostgres, type TestPostgres } from '../../world/database.ts';

let postgres: TestPostgres;
before(async () => {
  postgres = await startPostgres();
});
after(() => postgres.stop());

/** A database before partitions, with an entry of each age. */
async function withOld(ages: readonly string[], run: (db: Database) => Promise<void>): Promise<void> {
  const url = await postgres.createDatabase();
  const { db } = openDatabase({ url, maxConnections: 1, statementTimeoutMs: null, onIdleError: () => undefined });
  try {
    await db.transaction().execute(async (trx) => {
      for (const { up } of [identity, sandboxes, records, lifecycle, people, activityProjectKind])
        await up(trx as unknown as Kysely<unknown>);
    });
    await sql`insert into org (id, name) values ('org_a', 'A')`.execute(db);
    await sql`
      insert into activity (id, org_id, actor_kind, kind, subject_kind, subject_id, at)
      select 'act_' || age, 'org_a', 'operator', 'org_created', 'org', 'org_a', now() - age::interval
      from unnest(${ages}::text[]) with ordinality given (age, n) order by n`.execute(db);
    await run(db);
  } finally {
    await db.destroy();
  }
}

const migrate = async (db: Database): Promise<void> =>
  await db.transaction().execute((trx) => activityPartitions.up(trx as unknown as Kysely<unknown>));

const one = async (db: Database, query: string): Promise<string> => {
  const { rows } = await sql<{ one: string }>`select (${sql.raw(query)})::text as one`.execute(db);
  return rows[0]?.one ?? '';
};

test('the old table becomes the first partition without a copy; its indexes are used as they are', async () => {
  await withOld(['800 days', '40 days', '0'], async (db) => {
    const file = "pg_relation_filenode('TABLE')";
    const indexes = `select string_agg(pg_relation_filenode(indexrelid)::text, ',' order by indexrelid)
      from pg_index where indrelid = 'TABLE'::regclass`;
    const state = async (table: string): Promise<string[]> =>
      await Promise.all([file, indexes].map((query) => one(db, query.replace('TABLE', table))));
    const old = await state('activity');
    await migrate(db);
    assert.deepEqual(await state('activity_first'), old);
    const entries = await db.selectFrom('activity').select(['id', 'seq']).orderBy('seq').execute();
    assert.deepEqual(entries, [
      { id: 'act_800 days', seq: '1' },
      { id: 'act_40 days', seq: '2' },
      { id: 'act_0', seq: '3' },
    ]);
    // Every index of the feed has one on each partition.
    const attached = await one(
      db,
      `select string_agg(n::text, ',') from (select count(*) as n from pg_inherits
        where inhparent in (select indexrelid from pg_index where indrelid = 'activity'::regclass)
        group by inhparent) counts`,
    );
    assert.equal(attached, '2,2,2,2,2');
  });
});

test('new entries continue the numbers of the old ones, in order', async () => {
  await withOld(['1 day', '1 hour'], async (db) => {
    await migrate(db);
    await insertActivity(db, {
      orgId: 'org_a',
      actor: { kind: 'operator', id: null, userId: null },
      kind: 'org_created',
    });
    const entries = await db.selectFrom('activity').select('seq').orderBy('at').execute();
    assert.deepEqual(entries, [{ seq: '1' }, { seq: '2' }, { seq: '3' }]);
  });
});

test('an empty table, and entries of a clock that was wrong, are migrated too', async () => {
  await withOld([], async (db) => {
    await migrate(db);
    const [first, last] = await listActivityPartitions(db);
    assert.deepEqual([first?.name, first?.from, last?.to], ['activity_first', null, null]);
    assert.deepEqual(first?.to, last?.from);
    await insertActivity(db, {
      orgId: 'org_a',
      actor: { kind: 'operator', id: null, userId: null },
      kind: 'org_created',
    });
    assert.equal(await one(db, 'select seq from activity'), '1');
  });
  await withOld(['-1000 days', '1 day'], async (db) => {
    await migrate(db);
    const [first] = await listActivityPartitions(db);
    assert.ok((first?.to?.getTime() ?? 0) > Date.now() + 1_000 * 86_400_000);
    assert.equal(await one(db, 'select count(*) from activity_first'), '2');
  });
});
