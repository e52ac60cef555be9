// Export of the activity feed: NDJSON, oldest first, complete by cursor.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ACTIVITY_EXPORT } from '@berth/contract/route/limits.ts';
import { ROLE_PERMISSIONS, role } from '@berth/contract/route/permissions.ts';
import { sql } from 'kysely';
import { writeCursor } from '../../../src/rules/page.ts';
import { insertActivity } from '../../../src/store/activity/activity.ts';
import { selectActivityExport } from '../../../src/store/activity/feed.ts';
import { addActivityPartition } from '../../../src/store/activity/partitions.ts';
import { startApi, type Answer, type TestApi, type TestOrg } from '../../world/api.ts';
import { openWatched } from '../../world/watched-database.ts';

interface Entry {
  id: string;
  at: string;
  orgId: string;
  cursor: string;
}

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

const path = ({ orgId }: TestOrg, query = ''): string => `/v1/orgs/${orgId}/activity/export${query}`;
const read = (org: TestOrg, query = ''): Promise<Answer> => api.call('GET', path(org, query), { token: org.token });

/** Adds entries of the given age, a millisecond apart; `same`: of one instant. */
async function fill({ orgId }: TestOrg, rows: number, age: string, same = false): Promise<void> {
  await sql`
    insert into activity (id, org_id, actor_kind, kind, subject_kind, subject_id, at, details)
    select 'act_' || gen_random_uuid(), ${orgId}, 'system', 'sandbox_exec', 'org', ${orgId},
      now() - ${age}::interval + ${same ? 0 : 1} * n * interval '1 millisecond', '{"reason": "line\\nbreak"}'
    from generate_series(1, ${rows}::int) n`.execute(api.db);
}

/** Ids of the org's entries that are old enough, oldest first. */
async function expected({ orgId }: TestOrg): Promise<string[]> {
  const rows = await api.db
    .selectFrom('activity')
    .select('id')
    .where('org_id', '=', orgId)
    .where('at', '<', sql<Date>`now() - ${ACTIVITY_EXPORT.delaySeconds} * interval '1 second'`)
    .orderBy('at')
    .orderBy('seq')
    .execute();
  return rows.map(({ id }) => id);
}

async function readAll(org: TestOrg, limit: number, after?: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (let cursor = after; ;) {
    const { status, body } = await read(org, `?limit=${limit}${cursor === undefined ? '' : `&after=${cursor}`}`);
    assert.equal(status, 200, JSON.stringify(body));
    assert.ok(body.length <= limit);
    if (body.length === 0) return entries;
    entries.push(...body);
    cursor = body.at(-1).cursor;
  }
}

test('an export is NDJSON: a feed entry with its cursor in each line', async () => {
  const org = await api.makeOrg();
  await fill(org, 2, '1 hour');
  const response = await fetch(api.url + path(org), { headers: { authorization: `Bearer ${org.token}` } });
  assert.equal(response.headers.get('content-type'), 'application/x-ndjson; charset=utf-8');
  const text = await response.text();
  assert.match(text, /^\{.+\}\n\{.+\}\n$/);
  const lines = text.trimEnd().split('\n');
  const entries = lines.map((line): Entry => JSON.parse(line));
  const { activity } = (await api.call('GET', `/v1/orgs/${org.orgId}/activity?limit=2&kind=sandbox_exec`, org)).body;
  assert.deepEqual(
    entries,
    activity.toReversed().map((entry: Entry, at: number) => ({ ...entry, cursor: entries[at]?.cursor })),
  );
  const nothing = await fetch(api.url + path(org, `?after=${entries[1]?.cursor}`), {
    headers: { authorization: `Bearer ${org.token}` },
  });
  assert.deepEqual(
    [nothing.status, nothing.headers.get('content-type'), await nothing.text()],
    [200, 'application/x-ndjson; charset=utf-8', ''],
  );
});

test('cursors lead through every entry once, oldest first, over partitions and equal instants', async () => {
  await addActivityPartition(api.db);
  const org = await api.makeOrg();
  for (const age of ['300 days', '40 days', '1 day', '3 minutes']) await fill(org, 4, age);
  await fill(org, 5, '2 days', true);
  const all = await expected(org);
  assert.equal(all.length, 21);
  for (const limit of [1, 2, 5, 20, 21, 22]) {
    const read = await readAll(org, limit);
    assert.deepEqual(
      read.map(({ id }) => id),
      all,
      `limit ${limit}`,
    );
  }
  const [, second] = await readAll(org, 1_000);
  assert.deepEqual(
    (await readAll(org, 3, second?.cursor)).map(({ id }) => id),
    all.slice(2),
  );
});

test('a cursor stays valid when its entry is deleted', async () => {
  const org = await api.makeOrg();
  await fill(org, 3, '1 hour');
  const [first, second, third] = await readAll(org, 10);
  await api.db
    .deleteFrom('activity')
    .where('id', 'in', [first?.id ?? '', second?.id ?? ''])
    .execute();
  assert.deepEqual(await readAll(org, 10, second?.cursor), [third]);
});

test('an entry of a slow transaction is exported, behind newer ones that were committed first', async () => {
  const org = await api.makeOrg();
  const actor = { kind: 'system', id: null, userId: null } as const;
  await api.db.transaction().execute(async (slow) => {
    await insertActivity(slow, { orgId: org.orgId, actor, kind: 'sandbox_ready' });
    await insertActivity(api.db, { orgId: org.orgId, actor, kind: 'sandbox_running' });
    // Both entries are younger than the delay.
    assert.deepEqual((await read(org)).body, []);
  });
  await sql`update activity set at = at - interval '1 hour' where org_id = ${org.orgId}`.execute(api.db);
  const entries = await readAll(org, 1);
  assert.deepEqual(
    entries.slice(-2).map((entry) => (entry as Entry & { kind: string }).kind),
    ['sandbox_ready', 'sandbox_running'],
  );
});

test(`a response has ${ACTIVITY_EXPORT.entries} entries by default, the maximum`, async () => {
  const org = await api.makeOrg();
  await fill(org, ACTIVITY_EXPORT.entries + 1, '1 hour');
  const { body } = await read(org);
  assert.equal(body.length, ACTIVITY_EXPORT.entries);
  assert.equal((await read(org, `?after=${body.at(-1).cursor}`)).body.length, 1);
  for (const limit of ['0', String(ACTIVITY_EXPORT.entries + 1), 'all']) {
    const refused = await read(org, `?limit=${limit}`);
    assert.equal(refused.status, 400, limit);
    assert.match(refused.body.error.message, /query\.limit must be an integer from 1 to 1000/);
  }
});

test('an invalid cursor, or one of the feed, is 400 and named', async () => {
  const place = { atMicroseconds: 1_790_000_000_000_000, tie: '5' };
  assert.equal((await read(api, `?after=${writeCursor('activityExport', place)}`)).status, 200);
  for (const cursor of [
    'x',
    '%00',
    writeCursor('activity', place),
    writeCursor('activityExport', { ...place, tie: 'a' }),
  ]) {
    const { status, body } = await read(api, `?after=${cursor}`);
    assert.deepEqual(
      [status, body.error.message],
      [400, 'query.after must be the cursor of an exported entry'],
      cursor,
    );
  }
});

test("an export has only the org's entries and needs activity.read", async () => {
  const other = await api.makeOrg();
  await fill(other, 3, '1 hour');
  await fill(api, 3, '1 hour');
  const own = await readAll(api, 1_000);
  assert.ok(own.length >= 3 && own.every(({ orgId }) => orgId === api.orgId));
  const [foreign] = await readAll(other, 1);
  // A cursor is a position and grants nothing.
  assert.ok((await readAll(api, 10, foreign?.cursor)).every(({ orgId }) => orgId === api.orgId));
  assert.equal((await api.call('GET', path(other))).body.error.code, 'org_access_denied');
  for (const name of role.options) {
    const { token } = await api.makeSession({ role: name });
    const { status } = await api.call('GET', path(api), { token });
    assert.equal(status, ROLE_PERMISSIONS[name].has('activity.read') ? 200 : 403, name);
  }
  const scoped = await api.makeKey({ scopes: ['sandbox.read'] });
  assert.equal((await api.call('GET', path(api), { token: scoped })).body.error.code, 'permission_denied');
});

test('a response deep in a long feed is one query that reads no more entries than it returns', async () => {
  const org = await api.makeOrg();
  await fill(org, 20_000, '1 day');
  await sql`analyze activity`.execute(api.db);
  const { db, queries, explain } = openWatched(api.databaseUrl);
  try {
    const about = { orgId: org.orgId, delaySeconds: 120 };
    const middle = (await selectActivityExport(api.db, about, { limit: 10_000, after: null })).at(-1);
    assert.equal((await selectActivityExport(db, about, { limit: 50, after: middle?.place ?? null })).length, 50);
    assert.equal(queries.length, 1);
    const [query] = queries;
    assert.ok(query);
    const plan = await explain(query, 'run');
    const found = [...plan.matchAll(/"Actual Rows":([\d.]+)/g)].map(([, count]) => Number(count));
    assert.ok(found.length > 0 && Math.max(...found) <= 50, plan);
    assert.doesNotMatch(plan, /Rows Removed by Filter/);
  } finally {
    await db.destroy();
  }
});
