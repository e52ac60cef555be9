// Expired rows are deleted in batches by the leader; usable rows stay.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { planCatalogueOf, type Plans } from '../../src/rules/billing/plan-catalogue.ts';
import { LONGEST_REFILL_SECONDS } from '../../src/rules/access/throttle.ts';
import { deleteOldIdempotencyKeys } from '../../src/store/sandboxes/idempotency.ts';
import { deleteOldMetricsSamples } from '../../src/store/metrics/samples.ts';
import { EXPIRING_TABLES, deleteExpired } from '../../src/store/people/sign-in.ts';
import { removeOldRows } from '../../src/workers/retention.ts';
import type { StepContext } from '../../src/workers/steps/step-context.ts';
import { signInAs, startApi, type TestApi } from '../world/api.ts';

const MANY = 1_234;
let api: TestApi;
let context: Pick<StepContext, 'db' | 'stopping'> & { plans: Plans };
before(async () => {
  api = await startApi({ durable: false });
  context = { db: api.db, stopping: new AbortController().signal, plans: planCatalogueOf() };
});
after(() => api.close());

const session = (leads: boolean) => ({ isLeader: () => Promise.resolve(leads) });
const count = async (table: string): Promise<number> => {
  const { rows } = await sql<{ count: number }>`select count(*)::int as count from ${sql.table(table)}`.execute(api.db);
  return rows[0]?.count ?? -1;
};

/** Adds a row that expired, or expires, at the given distance from now. */
async function add(
  table: (typeof EXPIRING_TABLES)[number] | 'throttle',
  name: string,
  rows: number,
  age: string,
): Promise<void> {
  const ids = sql`
    select ${name}::text || n as id, now() - ${age}::interval as ended
    from generate_series(1, ${rows}::int) n`;
  const insert = {
    session: sql`
      insert into "session" (id, "expiresAt", token, "updatedAt", "userId")
      select id, ended, id, now(), ${api.userId} from (${ids}) r`,
    session_token: sql`
      insert into session_token (id, login_id, user_id, token_sha256, expires_at)
      select r.id, s.id, ${api.userId}, sha256(r.id::bytea), ended
      from (${ids}) r, (select id from "session" where id like 'kept%') s`,
    deviceCode: sql`
      insert into "deviceCode" (id, "deviceCode", "userCode", "expiresAt", status)
      select id, id, id, ended, 'pending' from (${ids}) r`,
    verification: sql`
      insert into verification (id, identifier, value, "expiresAt")
      select id, id, id, ended from (${ids}) r`,
    one_time_link: sql`
      insert into one_time_link (id, purpose, user_id, token_sha256, expires_at)
      select id, 'verify_email', ${api.userId}, sha256(id::bytea), ended from (${ids}) r`,
    throttle: sql`insert into throttle select sha256(id::bytea), 0, ended from (${ids}) r`,
  }[table];
  await insert.execute(api.db);
}

test('rows expired for a day are deleted in any number of batches; younger and valid ones stay', async () => {
  // Created by the first start.
  await api.db.deleteFrom('one_time_link').execute();
  await add('session', 'kept', 1, '-30 days');
  for (const table of EXPIRING_TABLES) {
    await add(table, 'old', MANY, '24 hours 1 second');
    await add(table, 'young', 5, '23 hours 59 minutes');
    await add(table, 'good', 5, '-5 minutes');
  }
  await add('throttle', 'old', MANY, `${LONGEST_REFILL_SECONDS + 1} seconds`);
  await add('throttle', 'young', 5, `${LONGEST_REFILL_SECONDS - 60} seconds`);
  await removeOldRows(context, session(true));
  for (const table of EXPIRING_TABLES) assert.equal(await count(table), table === 'session' ? 11 : 10, table);
  assert.equal(await count('throttle'), 5);
});

test('deleting a login deletes its access tokens', async () => {
  const { loginId } = await signInAs(api.db, api.userId);
  await sql`update "session" set "expiresAt" = now() - interval '2 days' where id = ${loginId}`.execute(api.db);
  await removeOldRows(context, session(true));
  const left = await api.db.selectFrom('session_token').select('id').where('login_id', '=', loginId).execute();
  assert.deepEqual(left, []);
});

test('preview links are deleted 30 days after expiry, revoked or not; their feed rows stay', async () => {
  const { id: sandboxId } = await api.makeSandbox('ready');
  const links = (name: string, rows: number, age: string, revoked: boolean) =>
    sql`
      insert into preview_link (id, sandbox_id, org_id, project_id, port, created_by, expires_at, revoked_at)
      select ${name}::text || n, ${sandboxId}, ${api.orgId}, ${api.projectId}, 80, ${api.userId},
        date_trunc('milliseconds', now() - ${age}::interval), case when ${revoked} then now() - interval '40 days' end
      from generate_series(1, ${rows}::int) n`.execute(api.db);
  const made = await api.call('POST', `/v1/sandboxes/${sandboxId}/previews`, {
    body: { port: 80, audience: 'public' },
  });
  await sql`
    update preview_link set expires_at = date_trunc('milliseconds', now() - interval '31 days')
    where id = ${made.body.preview.id}`.execute(api.db);
  await links('old', MANY, '30 days 1 second', false);
  await links('revoked', 3, '30 days 1 second', true);
  await links('young', 5, '29 days 23 hours', false);
  await links('young_revoked', 5, '29 days 23 hours', true);
  await links('good', 5, '-1 day', true);
  await removeOldRows(context, session(true));
  assert.equal(await count('preview_link'), 15);
  const told = await api.db
    .selectFrom('activity')
    .select('kind')
    .where('subject_id', '=', made.body.preview.id)
    .execute();
  assert.deepEqual(told, [{ kind: 'preview_link_created' }]);
});

async function addSamples(sandboxId: string, name: string, rows: number, age: string): Promise<void> {
  await sql`
    insert into metrics_sample
      (id, sandbox_id, at, uptime_seconds, cpu_busy_ms, vcpu, memory_gb, disk_gb, memory_used, disk_used)
    select ${name}::text || n, ${sandboxId}, now() - ${age}::interval, 1, 1, 1, 1, 10, 0.1, 0.1
    from generate_series(1, ${rows}::int) n`.execute(api.db);
}

test('metrics samples older than a day are deleted in batches, with or without their sandbox', async () => {
  const asleep = await api.makeSandbox('stopped');
  // Row of an installation from before samples were deleted with their sandbox.
  const deleted = await api.makeSandbox('deleted');
  await addSamples(asleep.id, 'old', MANY, '24 hours 1 second');
  await addSamples(deleted.id, 'left', 50_000, '3 days');
  await addSamples(asleep.id, 'young', 5, '23 hours 59 minutes');
  await removeOldRows(context, session(true));
  assert.equal(await count('metrics_sample'), MANY + 5);
  await removeOldRows(context, session(true));
  const left = await api.db.selectFrom('metrics_sample').select('id').orderBy('id').execute();
  assert.deepEqual(
    left.map(({ id }) => id),
    [1, 2, 3, 4, 5].map((n) => `young${n}`),
  );
});

test('a batch of samples skips locked rows', async () => {
  const { id } = await api.makeSandbox('ready');
  await addSamples(id, 'held', 2, '3 days');
  await addSamples(id, 'free', 3, '2 days');
  await api.db.transaction().execute(async (trx) => {
    await sql`select from metrics_sample where id like 'held%' for update`.execute(trx);
    assert.equal(await deleteOldMetricsSamples(api.db, 86_400_000, 10), 3);
  });
  assert.equal(await deleteOldMetricsSamples(api.db, 86_400_000, 1), 1);
});

const addKeys = (name: string, rows: number, age: string) =>
  sql`
    insert into idempotency_key (org_id, key, body_sha256, sandbox_id, created_at)
    select ${api.orgId}, ${name} || n, sha256('x'), 'sbx_x', now() - ${age}::interval
    from generate_series(1, ${rows}::int) n`.execute(api.db);

test('idempotency keys older than 24 hours are deleted in any number of batches; younger ones stay', async () => {
  await api.db.deleteFrom('idempotency_key').execute();
  await addKeys('young', 7, '23 hours 59 minutes');
  await addKeys('old', MANY, '24 hours 1 second');
  await removeOldRows(context, session(true));
  assert.equal(await count('idempotency_key'), 7);
});

test('a batch of idempotency keys is bounded, takes the oldest and skips a locked key', async () => {
  await api.db.deleteFrom('idempotency_key').execute();
  await addKeys('young', 7, '23 hours 59 minutes');
  await addKeys('oldest', 2, '3 days');
  await addKeys('old', 2, '2 days');
  assert.equal(await deleteOldIdempotencyKeys(api.db, 1), 1);
  await api.db.transaction().execute(async (trx) => {
    await sql`select from idempotency_key where key like 'oldest%' for update`.execute(trx);
    assert.equal(await deleteOldIdempotencyKeys(api.db, 10), 2);
  });
  const rest = await api.db.selectFrom('idempotency_key').select('key').where('key', 'not like', 'young%').execute();
  assert.deepEqual(
    rest.map(({ key }) => key.slice(0, 6)),
    ['oldest'],
  );
});

test('a replica that is not the leader deletes nothing', async () => {
  await add('verification', 'late', 3, '2 days');
  await addKeys('late', 3, '2 days');
  const [before, keysBefore] = [await count('verification'), await count('idempotency_key')];
  await removeOldRows(context, session(false));
  assert.equal(await count('verification'), before);
  assert.equal(await count('idempotency_key'), keysBefore);
});

test('a batch is bounded, takes the oldest rows and skips a locked row', async () => {
  await api.db.deleteFrom('verification').execute();
  await add('verification', 'oldest', 2, '3 days');
  await add('verification', 'old', 2, '2 days');
  assert.equal(await deleteExpired(api.db, 'verification', 1), 1);
  await api.db.transaction().execute(async (trx) => {
    await sql`select from verification where id like 'oldest%' for update`.execute(trx);
    assert.equal(await deleteExpired(api.db, 'verification', 10), 2);
  });
  const rest = await api.db.selectFrom('verification').select('id').execute();
  assert.deepEqual(
    rest.map(({ id }) => id.slice(0, 6)),
    ['oldest'],
  );
});
