// Migration of orgs from before their creator was stored.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql, type Kysely } from 'kysely';
import * as identity from '../../../migrations/0001-0020/0001_identity.ts';
import * as sandboxes from '../../../migrations/0001-0020/0002_sandboxes.ts';
import * as records from '../../../migrations/0001-0020/0003_records.ts';
import * as orgCreator from '../../../migrations/0001-0020/0018_org_creator.ts';
import { openDatabase } from '../../../src/store/database/database.ts';
import { startPostgres, type TestPostgres } from '../../world/database.ts';

let postgres: TestPostgres;
before(async () => {
  postgres = await startPostgres();
});
after(() => postgres.stop());

test('old orgs get the creator that the feed names, if the account exists', async () => {
  const url = await postgres.createDatabase();
  const { db } = openDatabase({ url, maxConnections: 1, statementTimeoutMs: null, onIdleError: () => undefined });
  try {
    await db.transaction().execute(async (trx) => {
      for (const { up } of [identity, sandboxes, records]) await up(trx as unknown as Kysely<unknown>);
    });
    await sql`insert into "user" ("id", "name", "email", "emailVerified")
      values ('usr_a', 'A', 'a@x.test', true)`.execute(db);
    await sql`insert into org (id, name) values ('org_a', 'A'), ('org_gone', 'G'), ('org_operator', 'O')`.execute(db);
    await sql`
      insert into activity (id, org_id, actor_kind, actor_user_id, kind)
      values
        ('act_1', 'org_a', 'session', 'usr_a', 'org_created'),
        ('act_2', 'org_gone', 'session', 'usr_gone', 'org_created'),
        ('act_3', 'org_operator', 'operator', null, 'org_created'),
        ('act_4', 'org_operator', 'session', 'usr_a', 'project_created')`.execute(db);
    await db.transaction().execute((trx) => orgCreator.up(trx as unknown as Kysely<unknown>));
    const rows = await db.selectFrom('org').select(['id', 'created_by']).orderBy('id').execute();
    assert.deepEqual(rows, [
      { id: 'org_a', created_by: 'usr_a' },
      { id: 'org_gone', created_by: null },
      { id: 'org_operator', created_by: null },
    ]);
  } finally {
    await db.destroy();
  }
});
