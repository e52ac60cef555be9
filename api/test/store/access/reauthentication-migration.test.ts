// Migration of sign-in sessions from before their last proof of identity was stored.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql, type Kysely } from 'kysely';
import * as identity from '../../../migrations/0001-0020/0001_identity.ts';
import * as sandboxes from '../../../migrations/0001-0020/0002_sandboxes.ts';
import * as records from '../../../migrations/0001-0020/0003_records.ts';
import * as lifecycle from '../../../migrations/0001-0020/0004_lifecycle.ts';
import * as people from '../../../migrations/0001-0020/0005_people.ts';
import * as reauthentication from '../../../migrations/0021-0040/0025_reauthentication.ts';
import { openDatabase } from '../../../src/store/database/database.ts';
import { startPostgres, type TestPostgres } from '../../world/database.ts';

let postgres: TestPostgres;
before(async () => {
  postgres = await startPostgres();
});
after(() => postgres.stop());

test('an old sign-in session keeps the age of its sign-in; a new one starts at zero', async () => {
  const url = await postgres.createDatabase();
  const { db } = openDatabase({ url, maxConnections: 1, statementTimeoutMs: null, onIdleError: () => undefined });
  try {
    await db.transaction().execute(async (trx) => {
      for (const { up } of [identity, sandboxes, records, lifecycle, people])
        await up(trx as unknown as Kysely<unknown>);
    });
    await sql`insert into "user" ("id", "name", "email", "emailVerified")
      values ('usr_a', 'A', 'a@x.test', true)`.execute(db);
    const insert = async (id: string, createdAt: string): Promise<unknown> =>
      await sql`
        insert into "session" ("id", "expiresAt", "token", "createdAt", "updatedAt", "userId")
        values (${id}, now(), ${id}, ${createdAt}::timestamptz, now(), 'usr_a')`.execute(db);
    await insert('old', '2026-01-02T03:04:05Z');
    await db.transaction().execute((trx) => reauthentication.up(trx as unknown as Kysely<unknown>));
    await insert('new', '2026-01-02T03:04:05Z');
    const { rows } = await sql<{ id: string; at: Date; recent: boolean }>`
      select "id", "authenticatedAt" as at, "authenticatedAt" > now() - interval '1 minute' as recent
      from "session" order by "id" desc`.execute(db);
    assert.deepEqual(
      rows.map(({ id, recent }) => [id, recent]),
      [
        ['old', false],
        ['new', true],
      ],
    );
    assert.equal(rows[0]?.at.toISOString(), '2026-01-02T03:04:05.000Z');
  } finally {
    await db.destroy();
  }
});
