// Migration of installations from before the operator's org was marked.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql, type Kysely } from 'kysely';
import * as identity from '../../../migrations/0001-0020/0001_identity.ts';
import * as sandboxes from '../../../migrations/0001-0020/0002_sandboxes.ts';
import * as records from '../../../migrations/0001-0020/0003_records.ts';
import * as orgCreator from '../../../migrations/0001-0020/0018_org_creator.ts';
import * as operatorOrg from '../../../migrations/0041_operator_org.ts';
import { openDatabase } from '../../../src/store/database/database.ts';
import { startPostgres, type TestPostgres } from '../../world/database.ts';

let postgres: TestPostgres;
before(async () => {
  postgres = await startPostgres();
});
after(() => postgres.stop());

/** The marked orgs of an installation with these orgs, oldest first. */
async function marked(orgs: readonly { id: string; actor: string; account?: boolean }[]): Promise<string[]> {
  const url = await postgres.createDatabase();
  const { db } = openDatabase({ url, maxConnections: 1, statementTimeoutMs: null, onIdleError: () => undefined });
  try {
    await db.transaction().execute(async (trx) => {
      for (const { up } of [identity, sandboxes, records]) await up(trx as unknown as Kysely<unknown>);
    });
    for (const [index, { id, actor, account = true }] of orgs.entries()) {
      const userId = actor === 'operator' ? null : `usr_${id}`;
      if (userId !== null && account) {
        await sql`insert into "user" ("id", "name", "email", "emailVerified")
          values (${userId}, 'A', ${`${id}@x.test`}, true)`.execute(db);
      }
      await sql`insert into org (id, name, created_at)
        values (${id}, 'O', now() + ${index}::int * interval '1 s')`.execute(db);
      await sql`insert into activity (id, org_id, actor_kind, actor_user_id, kind)
        values (${`act_${id}`}, ${id}, ${actor}, ${userId}, 'org_created')`.execute(db);
    }
    await db.transaction().execute(async (trx) => {
      for (const { up } of [orgCreator, operatorOrg]) await up(trx as unknown as Kysely<unknown>);
    });
    const rows = await db.selectFrom('org').select('id').where('is_operator', '=', true).execute();
    return rows.map(({ id }) => id);
  } finally {
    await db.destroy();
  }
}

test("the org of the first start becomes the operator's, and no org of a user does", async () => {
  const first = { id: 'org_z', actor: 'operator' };
  const stranger = { id: 'org_a', actor: 'session' };
  assert.deepEqual(await marked([first, stranger]), ['org_z']);
  assert.deepEqual(await marked([stranger, first]), []);
  assert.deepEqual(await marked([{ ...stranger, account: false }, first]), []);
  assert.deepEqual(await marked([]), []);
});
