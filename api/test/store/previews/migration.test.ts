// Migration of public links from before their key was stored.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql, type Kysely } from 'kysely';
import * as identity from '../../../migrations/0001-0020/0001_identity.ts';
import * as sandboxes from '../../../migrations/0001-0020/0002_sandboxes.ts';
import * as records from '../../../migrations/0001-0020/0003_records.ts';
import * as lifecycle from '../../../migrations/0001-0020/0004_lifecycle.ts';
import * as people from '../../../migrations/0001-0020/0005_people.ts';
import * as previews from '../../../migrations/0001-0020/0007_previews.ts';
import * as previewLinkKey from '../../../migrations/0001-0020/0017_preview_link_key.ts';
import { openDatabase } from '../../../src/store/database/database.ts';
import { startPostgres, type TestPostgres } from '../../world/database.ts';

let postgres: TestPostgres;
before(async () => {
  postgres = await startPostgres();
});
after(() => postgres.stop());

test('old links get the key that the feed names; links of people get none', async () => {
  const url = await postgres.createDatabase();
  const { db } = openDatabase({ url, maxConnections: 1, statementTimeoutMs: null, onIdleError: () => undefined });
  try {
    await db.transaction().execute(async (trx) => {
      for (const { up } of [identity, sandboxes, records, lifecycle, people, previews])
        await up(trx as unknown as Kysely<unknown>);
    });
    await sql`insert into org (id, name) values ('org_a', 'A')`.execute(db);
    await sql`
      insert into preview_link (id, sandbox_id, org_id, project_id, port, expires_at)
      select id, 'sbx_a', 'org_a', 'prj_a', 80, '2027-01-01T00:00Z'
      from unnest(array['prv_key', 'prv_person', 'prv_no_feed']) id`.execute(db);
    await sql`
      insert into activity (id, org_id, sandbox_id, actor_kind, actor_id, kind, subject_kind, subject_id)
      values
        ('act_1', 'org_a', 'sbx_a', 'api_key', 'key_a', 'preview_link_created', 'preview_link', 'prv_key'),
        ('act_2', 'org_a', 'sbx_a', 'session', null, 'preview_link_created', 'preview_link', 'prv_person'),
        ('act_3', 'org_a', 'sbx_a', 'api_key', 'key_b', 'preview_link_revoked', 'preview_link', 'prv_person')
    `.execute(db);
    await db.transaction().execute((trx) => previewLinkKey.up(trx as unknown as Kysely<unknown>));
    const rows = await db.selectFrom('preview_link').select(['id', 'api_key_id']).orderBy('id').execute();
    assert.deepEqual(rows, [
      { id: 'prv_key', api_key_id: 'key_a' },
      { id: 'prv_no_feed', api_key_id: null },
      { id: 'prv_person', api_key_id: null },
    ]);
  } finally {
    await db.destroy();
  }
});
