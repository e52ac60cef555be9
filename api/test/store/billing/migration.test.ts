// Migration of subscriptions from before billing.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql, type Kysely } from 'kysely';
import * as identity from '../../../migrations/0001-0020/0001_identity.ts';
import * as sandboxes from '../../../migrations/0001-0020/0002_sandboxes.ts';
import * as records from '../../../migrations/0001-0020/0003_records.ts';
import * as lifecycle from '../../../migrations/0001-0020/0004_lifecycle.ts';
import * as people from '../../../migrations/0001-0020/0005_people.ts';
import * as billing from '../../../migrations/0001-0020/0008_billing.ts';
import { openDatabase } from '../../../src/store/database/database.ts';
import { startPostgres, type TestPostgres } from '../../world/database.ts';

let postgres: TestPostgres;
before(async () => {
  postgres = await startPostgres();
});
after(() => postgres.stop());

test('an old subscription keeps plan, start and period anchor; an ended one becomes canceled', async () => {
  const url = await postgres.createDatabase();
  const { db } = openDatabase({ url, maxConnections: 1, statementTimeoutMs: null, onIdleError: () => undefined });
  try {
    await db.transaction().execute(async (trx) => {
      for (const { up } of [identity, sandboxes, records, lifecycle, people])
        await up(trx as unknown as Kysely<unknown>);
    });
    await sql`insert into org (id, name) values ('org_a', 'A'), ('org_b', 'B')`.execute(db);
    await sql`
      insert into subscription (org_id, plan, status, started_at)
      values
        ('org_a', 'self-hosted', 'active', '2026-01-31 10:00:00.123456+00'),
        ('org_b', 'starter', 'ended', '2026-02-01 00:00:00+00')`.execute(db);
    await db.transaction().execute((trx) => billing.up(trx as unknown as Kysely<unknown>));
    const [a, b] = await db.selectFrom('subscription').selectAll().orderBy('org_id').execute();
    const start = new Date('2026-01-31T10:00:00.123Z');
    assert.deepEqual(
      [a?.plan, a?.status, a?.started_at, a?.period_anchor, a?.canceled_at],
      ['self-hosted', 'active', start, start, null],
    );
    assert.deepEqual([a?.machine_hour_limit, a?.overage_enabled, a?.provider_subscription_id], [null, false, null]);
    assert.deepEqual([b?.plan, b?.status, b?.canceled_at instanceof Date], ['starter', 'canceled', true]);
    const { rows } = await sql<{ whole: boolean }>`
      select bool_and(date_trunc('milliseconds', started_at) = started_at) as whole from subscription`.execute(db);
    assert.deepEqual(rows, [{ whole: true }]);
  } finally {
    await db.destroy();
  }
});
