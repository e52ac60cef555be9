// Migration of machine time from before the sums.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql, type Kysely } from 'kysely';
import * as identity from '../../../migrations/0001-0020/0001_identity.ts';
import * as sandboxes from '../../../migrations/0001-0020/0002_sandboxes.ts';
import * as records from '../../../migrations/0001-0020/0003_records.ts';
import * as lifecycle from '../../../migrations/0001-0020/0004_lifecycle.ts';
import * as people from '../../../migrations/0001-0020/0005_people.ts';
import * as billing from '../../../migrations/0001-0020/0008_billing.ts';
import * as usageRollup from '../../../migrations/0001-0020/0009_usage_rollup.ts';
import { openDatabase } from '../../../src/store/database/database.ts';
import { usedMs } from '../../../src/store/usage/sums.ts';
import { rollUpOrgUsage } from '../../../src/workers/usage/rollup.ts';
import { startPostgres, type TestPostgres } from '../../world/database.ts';

let postgres: TestPostgres;
before(async () => {
  postgres = await startPostgres();
});
after(() => postgres.stop());

test('metered time from before the migration counts unchanged, and open intervals continue', async () => {
  const url = await postgres.createDatabase();
  const { db } = openDatabase({ url, maxConnections: 1, statementTimeoutMs: null, onIdleError: () => undefined });
  try {
    await db.transaction().execute(async (trx) => {
      for (const { up } of [identity, sandboxes, records, lifecycle, people, billing])
        await up(trx as unknown as Kysely<unknown>);
    });
    await sql`insert into org (id, name) values ('org_a', 'A')`.execute(db);
    await sql`insert into subscription (org_id, plan, status, started_at, period_anchor)
      values ('org_a', 'self-hosted', 'active', '2026-01-01T00:00Z', '2026-01-01T00:00Z')`.execute(db);
    await sql`
      insert into usage_interval (id, sandbox_id, org_id, project_id, vcpu, memory_gb, disk_gb, during) values
        ('use_1', 'sbx_1', 'org_a', 'prj_a', 1, 1, 10, '[2026-01-01T22:00Z, 2026-01-02T04:00Z)'),
        ('use_2', 'sbx_1', 'org_a', 'prj_a', 1, 1, 10, '[2026-01-02T05:00Z, 2026-01-02T06:30Z)'),
        ('use_3', 'sbx_1', 'org_a', 'prj_a', 1, 1, 10, '[2026-01-02T07:00Z,)')`.execute(db);
    await db.transaction().execute((trx) => usageRollup.up(trx as unknown as Kysely<unknown>));
    const used = (): Promise<number> =>
      usedMs(db, {
        orgId: 'org_a',
        from: new Date('2026-01-01T00:00Z'),
        to: new Date('2026-02-01T00:00Z'),
        at: new Date('2026-01-02T08:00Z'),
      });
    const expectedMs = 8.5 * 3_600_000;
    assert.equal(await used(), expectedMs);
    assert.equal(await rollUpOrgUsage(db, 'org_a', 100), 2);
    assert.equal(await used(), expectedMs);
    await sql`update usage_interval set during = '[2026-01-02T07:00Z, 2026-01-02T07:15Z)' where id = 'use_3'`.execute(
      db,
    );
    assert.equal(await rollUpOrgUsage(db, 'org_a', 100), 1);
    assert.equal(await used(), expectedMs - 45 * 60_000);
  } finally {
    await db.destroy();
  }
});
