// Migrations under concurrent starts, and constraints of the schema.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { openDatabase } from '../../../src/store/database/database.ts';
import { newId } from '../../../src/store/database/ids.ts';
import { migrate } from '../../../src/store/database/migrate.ts';
import type { Database } from '../../../src/store/database/schema.ts';
import { startPostgres, type TestPostgres } from '../../world/database.ts';

let postgres: TestPostgres;
let db: Database;
let applied: string[][];
before(async () => {
  postgres = await startPostgres();
  const url = await postgres.createDatabase();
  applied = await Promise.all(Array.from({ length: 6 }, () => migrate(url)));
  ({ db } = openDatabase({ url, maxConnections: 4, statementTimeoutMs: 30_000, onIdleError: () => undefined }));
  await sql`insert into org (id, name) values ('org_1', 'Org')`.execute(db);
});
after(async () => {
  await db.destroy();
  await postgres.stop();
});

test('replicas that start concurrently migrate once, and all succeed', () => {
  assert.equal(applied.filter((names) => names.length > 0).length, 1);
  assert.ok(applied.some((names) => names.length >= 3));
});

test("the user table has the sign-in library's columns", async () => {
  const { rows } = await sql<{ column_name: string; data_type: string; is_nullable: string }>`
    select column_name, data_type, is_nullable
    from information_schema.columns
    where table_name = 'user'
    order by ordinal_position`.execute(db);
  assert.deepEqual(
    rows.map((row) => [row.column_name, row.data_type, row.is_nullable]),
    [
      ['id', 'text', 'NO'],
      ['name', 'text', 'NO'],
      ['email', 'text', 'NO'],
      ['emailVerified', 'boolean', 'NO'],
      ['image', 'text', 'YES'],
      ['createdAt', 'timestamp with time zone', 'NO'],
      ['updatedAt', 'timestamp with time zone', 'NO'],
    ],
  );
});

const meter = (sandboxId: string, during: string) =>
  sql`insert into usage_interval (id, sandbox_id, org_id, project_id, vcpu, memory_gb, disk_gb, during)
    values (${newId('usageInterval')}, ${sandboxId}, 'org_1', 'prj_1', 1, 1, 10, ${during}::tstzrange)`.execute(db);

test('the database refuses overlapping intervals of a sandbox and accepts adjacent ones', async () => {
  await meter('sbx_1', '[2026-01-01T00:00Z,2026-01-01T01:00Z)');
  await meter('sbx_1', '[2026-01-01T01:00Z,)');
  await meter('sbx_2', '[2026-01-01T00:30Z,2026-01-01T02:00Z)');
  for (const during of [
    '[2026-01-01T00:30Z,2026-01-01T00:31Z)',
    '[2025-01-01T00:00Z,)',
    '[2027-01-01T00:00Z,2027-01-02T00:00Z)',
  ])
    await assert.rejects(meter('sbx_1', during), /usage_interval_never_twice/);
});

test('an interval without a start is refused', async () => {
  await assert.rejects(meter('sbx_3', '(,2026-01-01T00:00Z)'), /violates check constraint/);
});

test('ids are a prefix and 24 characters of base32, and no two are alike', () => {
  const ids = Array.from({ length: 5_000 }, () => newId('sandbox'));
  for (const id of ids) assert.match(id, /^sbx_[a-z2-7]{24}$/);
  assert.equal(new Set(ids).size, ids.length);
});
