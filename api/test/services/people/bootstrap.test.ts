// The first start.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { SELF_HOSTED_PLAN } from '@berth/contract/billing/plans.ts';
import type { Role } from '@berth/contract/route/permissions.ts';
import { mintOwnerKey } from '../../../src/services/access/api-keys.ts';
import { changePlan } from '../../../src/services/billing/plan-change.ts';
import { makeOwnerLink } from '../../../src/services/people/accounts.ts';
import { bootstrap, type BootstrapNames } from '../../../src/services/people/bootstrap.ts';
import { findOneTimeLink } from '../../../src/services/access/one-time-links.ts';
import { openDatabase } from '../../../src/store/database/database.ts';
import { findOperatorOrgId, insertMembership, insertOrg, insertUser } from '../../../src/store/people/identity.ts';
import { migrate } from '../../../src/store/database/migrate.ts';
import type { Database } from '../../../src/store/database/schema.ts';
import { startPostgres, type TestPostgres } from '../../world/database.ts';

const NAMES: BootstrapNames = {
  ownerEmail: 'o@example.test',
  ownerName: 'O',
  orgName: 'Org',
  projectName: 'Project',
  keyName: 'operator',
};

let postgres: TestPostgres;
let db: Database;
before(async () => {
  postgres = await startPostgres();
  const url = await postgres.createDatabase();
  await migrate(url);
  ({ db } = openDatabase({ url, maxConnections: 8, statementTimeoutMs: 30_000, onIdleError: () => undefined }));
});
after(async () => {
  await db.destroy();
  await postgres.stop();
});

test('concurrent first starts create one account, org, project and key; the others get no token', async () => {
  const results = await Promise.all(Array.from({ length: 6 }, () => bootstrap(db, NAMES)));
  const created = results.filter((result) => result.created);
  assert.equal(created.length, 1);
  const [made] = created;
  assert.ok(made);
  for (const result of results) {
    assert.deepEqual([result.orgId, result.projectId, result.userId], [made.orgId, made.projectId, made.userId]);
    assert.equal('token' in result, result === made);
    assert.equal('welcomePath' in result, result === made);
  }
  for (const table of ['user', 'org', 'project', 'api_key'] as const)
    assert.equal((await db.selectFrom(table).select('id').execute()).length, 1);

  const membership = await db.selectFrom('membership').select(['org_id', 'user_id', 'role']).execute();
  assert.deepEqual(membership, [{ org_id: made.orgId, user_id: made.userId, role: 'owner' }]);
  const events = await db
    .selectFrom('activity')
    .select(['kind', 'actor_kind', 'org_id'])
    .orderBy('at')
    .orderBy('kind')
    .execute();
  assert.deepEqual(events.map((event) => event.kind).toSorted(), ['api_key_created', 'org_created', 'project_created']);
  assert.ok(events.every((event) => event.actor_kind === 'operator' && event.org_id === made.orgId));
});

test("the first start's link claims the owner's account for seven days; only its hash is stored", async () => {
  const fresh = await openFresh();
  try {
    const made = await bootstrap(fresh, NAMES);
    assert.ok(made.created);
    const [, token = ''] = /^\/welcome\?token=([\w-]{43})$/.exec(made.welcomePath) ?? [];
    assert.deepEqual(await findOneTimeLink(fresh, 'welcome', token), { userId: made.userId });
    const [link, ...others] = await fresh.selectFrom('one_time_link').selectAll().execute();
    assert.ok(link);
    assert.deepEqual(others, []);
    assert.equal((link.expires_at.getTime() - link.created_at.getTime()) / 60_000, 7 * 24 * 60);
    assert.equal(JSON.stringify(await everyRow(fresh)).includes(token), false);
    assert.deepEqual(await fresh.selectFrom('account').selectAll().execute(), []);
  } finally {
    await fresh.destroy();
  }
});

test("an org that a stranger created first stays a tenant's: the first start makes the operator's", async () => {
  const fresh = await openFresh();
  try {
    await insertUser(fresh, { id: 'usr_stranger', name: 'S', email: 's@example.test' });
    await insertOrg(fresh, { id: 'org_stranger', name: 'S', createdBy: 'usr_stranger' });
    await insertMembership(fresh, { orgId: 'org_stranger', userId: 'usr_stranger', role: 'owner' });
    assert.equal(await findOperatorOrgId(fresh), undefined);
    const made = await bootstrap(fresh, NAMES);
    assert.deepEqual([made.created, await findOperatorOrgId(fresh)], [true, made.orgId]);
    assert.notEqual(made.orgId, 'org_stranger');
    assert.deepEqual(
      [await bootstrap(fresh, NAMES)].map(({ created, orgId }) => [created, orgId]),
      [[false, made.orgId]],
    );
  } finally {
    await fresh.destroy();
  }
});

test("a start with an operator's org without an owner fails with the remedy and creates nothing", async () => {
  const fresh = await openFresh();
  try {
    const { orgId, userId } = await bootstrap(fresh, NAMES);
    const setRole = (role: Role) => fresh.updateTable('membership').set({ role }).execute();
    await setRole('admin');
    const remedy = new RegExp(`org ${orgId} has no owner.* the role 'owner'`);
    await assert.rejects(bootstrap(fresh, NAMES), remedy);
    await assert.rejects(makeOwnerLink(fresh), remedy);
    for (const org of [{}, { orgId }]) {
      await assert.rejects(
        mintOwnerKey(fresh, { name: 'key', scopes: ['sandbox.read'], expiresInDays: 1, ...org }),
        remedy,
      );
      await assert.rejects(changePlan(fresh, new Map([['free', SELF_HOSTED_PLAN]]), { plan: 'free', ...org }), remedy);
    }
    assert.equal((await fresh.selectFrom('org').select('id').execute()).length, 1);
    await setRole('owner');
    assert.equal((await bootstrap(fresh, NAMES)).userId, userId);
  } finally {
    await fresh.destroy();
  }
});

/** Opens a new migrated database. */
async function openFresh(): Promise<Database> {
  const url = await postgres.createDatabase();
  await migrate(url);
  return openDatabase({ url, maxConnections: 2, statementTimeoutMs: 30_000, onIdleError: () => undefined }).db;
}

/** Content of the database, table by table, bytes in hex. */
async function everyRow(database: Database): Promise<unknown[]> {
  const tables = await sql<{
    name: string;
  }>`select tablename as name from pg_tables where schemaname = 'public'`.execute(database);
  const rows = tables.rows.map(
    async ({ name }) =>
      (await sql<{ row: string }>`select t::text as row from ${sql.table(name)} t`.execute(database)).rows,
  );
  return await Promise.all(rows);
}
