// Migration of sign-ins and orgs from before single sign-on could be required.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql, type Kysely } from 'kysely';
import * as sso from '../../../migrations/0021-0040/0035_sso.ts';
import { openDatabase } from '../../../src/store/database/database.ts';
import { startPostgres, type TestPostgres } from '../../world/database.ts';

let postgres: TestPostgres;
before(async () => {
  postgres = await startPostgres();
});
after(() => postgres.stop());

test('earlier sign-ins do not count as SSO, and earlier orgs do not require it', async () => {
  const url = await postgres.createDatabase();
  const { db } = openDatabase({ url, maxConnections: 1, statementTimeoutMs: null, onIdleError: () => undefined });
  try {
    await sql`create table "session" (id text)`.execute(db);
    await sql`create table "deviceCode" (id text)`.execute(db);
    await sql`create table org (id text primary key)`.execute(db);
    for (const table of ['session', 'deviceCode', 'org'])
      await sql`insert into ${sql.table(table)} values ('a')`.execute(db);
    await db.transaction().execute((trx) => sso.up(trx as unknown as Kysely<unknown>));
    const { rows } =
      await sql`select "session"."viaSso" as session, "deviceCode"."viaSso" as device, sso_required as org
      from "session", "deviceCode", org`.execute(db);
    assert.deepEqual(rows, [{ session: false, device: false, org: false }]);
  } finally {
    await db.destroy();
  }
});
