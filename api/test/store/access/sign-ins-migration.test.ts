// Migration of sign-ins from before their last use was stored.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql, type Kysely } from 'kysely';
import * as signIns from '../../../migrations/0021-0040/0027_sign_ins.ts';
import { openDatabase } from '../../../src/store/database/database.ts';
import { startPostgres, type TestPostgres } from '../../world/database.ts';

let postgres: TestPostgres;
before(async () => {
  postgres = await startPostgres();
});
after(() => postgres.stop());

test('an earlier sign-in was last used at its last extension; a new one now', async () => {
  const url = await postgres.createDatabase();
  const { db } = openDatabase({ url, maxConnections: 1, statementTimeoutMs: null, onIdleError: () => undefined });
  try {
    await sql`create table session (id text primary key, "updatedAt" timestamptz not null)`.execute(db);
    await sql`insert into session values ('sgn_old', '2026-01-02T03:04:05Z')`.execute(db);
    await signIns.up(db as unknown as Kysely<unknown>);
    await sql`insert into session values ('sgn_new', '2026-01-02T03:04:05Z')`.execute(db);
    const [old, fresh] = await db.selectFrom('session').select('lastUsedAt').orderBy('id', 'desc').execute();
    assert.equal(old?.lastUsedAt.toISOString(), '2026-01-02T03:04:05.000Z');
    assert.ok((fresh?.lastUsedAt.getTime() ?? 0) > (old?.lastUsedAt.getTime() ?? 0));
  } finally {
    await db.destroy();
  }
});
