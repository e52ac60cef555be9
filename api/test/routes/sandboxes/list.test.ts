// Filters, orders and counts of the sandbox list, over HTTP.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { countSandboxes, listSandboxes } from '../../../src/store/sandboxes/list.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';
import { openWatched } from '../../world/watched-database.ts';

let api: TestApi;
let other: { orgId: string; projectId: string; token: string };
before(async () => {
  api = await startApi({ durable: false });
  other = await api.makeOrg();
  const second = await api.call('POST', `/v1/orgs/${api.orgId}/projects`, { body: { name: 'second' } });
  const projectId = second.body.project.id as string;
  await make('a', 'ready', { name: 'Web one', metadata: JSON.stringify({ plan: 'pro', seats: 3 }) }, [1, 4]);
  await make(
    'b',
    'stopped',
    { name: 'web_two', metadata: JSON.stringify({ plan: 'pro', seats: '3', trial: true }) },
    [2, 3],
  );
  await make(
    'c',
    'stopped',
    { name: '100%', metadata: JSON.stringify({ plan: 'free' }), project_id: projectId },
    [3, 2],
  );
  await make(
    'd',
    'failed',
    { name: 'other', end_user_id: 'user', metadata: JSON.stringify({}), project_id: projectId },
    [4, 1],
  );
  await make('e', 'deleted', { name: 'web gone', deleted_at: new Date() }, [5, 5]);
  await api.makeSandbox('ready', { org_id: other.orgId, project_id: other.projectId, name: 'web of another org' });
  PROJECTS.second = projectId;
});
after(() => api.close());

const PROJECTS = { second: '' };
const IDS = new Map<string, string>();

/** Adds a sandbox with its second of creation and of last use. */
async function make(
  letter: string,
  status: Parameters<TestApi['makeSandbox']>[0],
  values: Parameters<TestApi['makeSandbox']>[1],
  [created, active]: readonly [number, number],
): Promise<void> {
  const { id } = await api.makeSandbox(status, values);
  IDS.set(id, letter);
  await sql`
    update sandbox set
      created_at = timestamptz '2026-01-01' + ${created}::int * interval '1 second',
      last_active_at = timestamptz '2026-01-01' + ${active}::int * interval '1 second'
    where id = ${id}`.execute(api.db);
}

const get = (query: string, path = 'sandboxes'): Promise<Answer> =>
  api.call('GET', `/v1/orgs/${api.orgId}/${path}${query}`);

/** The letters of the listed sandboxes. */
async function listed(query: string): Promise<string> {
  const { status, body } = await get(query);
  assert.equal(status, 200, JSON.stringify(body));
  return (body.sandboxes as { id: string }[]).map(({ id }) => IDS.get(id) ?? '?').join('');
}

async function assertRefused(query: string, reason: RegExp): Promise<void> {
  const { status, body } = await get(query);
  assert.deepEqual([status, body.error.code], [400, 'invalid_request']);
  assert.match(body.error.message, reason);
}

const idOf = (letter: string): string => [...IDS].find(([, of]) => of === letter)?.[0] ?? '';

for (const [query, expected] of [
  ['', 'dcba'],
  ['?status=stopped', 'cb'],
  ['?status=stopped&status=failed', 'dcb'],
  ['?status=waking', ''],
  ['?q=WEB', 'ba'],
  ['?q=_', 'b'],
  ['?q=%25', 'c'],
  ['?q=%5C', ''],
  ['?name=Web%20one', 'a'],
  ['?name=web%20one', ''],
  ['?name=Web', ''],
  ['?createdBy=usr_aaaaaaaaaaaaaaaaaaaaaaaa', ''],
  ['?createdBy=%00', ''],
  ['?metadata[plan]=pro', 'ba'],
  ['?metadata[plan]=pro&metadata[trial]=true', 'b'],
  ['?metadata%5Bseats%5D=3', 'ba'],
  ['?metadata[none]=', ''],
  ['?endUserId=user&status=failed', 'd'],
  ['?endUserId=user&status=ready', ''],
  ['?sort=createdAt', 'abcd'],
  ['?sort=-createdAt', 'dcba'],
  ['?sort=lastActiveAt', 'dcba'],
  ['?sort=-lastActiveAt', 'abcd'],
  ['?sort=createdAt&status=stopped', 'bc'],
] as const) {
  test(`the list${query} has the sandboxes '${expected}'`, async () => {
    assert.equal(await listed(query), expected);
  });
}

test('a project filters the list; one of another org matches nothing', async () => {
  assert.equal(await listed(`?projectId=${PROJECTS.second}`), 'dc');
  assert.equal(await listed(`?projectId=${other.projectId}`), '');
  assert.equal(await listed('?projectId=%00'), '');
});

test('the creator filters the list, and is shown', async () => {
  const { userId } = await api.makeSession({ role: 'member' });
  const { id } = await api.makeSandbox('ready', { created_by: userId, name: 'of a member' });
  try {
    const { body } = await get(`?createdBy=${userId}`);
    assert.deepEqual(
      body.sandboxes.map((one: { id: string; createdBy: string }) => [one.id, one.createdBy]),
      [[id, userId]],
    );
  } finally {
    await api.db.deleteFrom('sandbox').where('id', '=', id).execute();
  }
});

test('the start of an id finds its sandbox', async () => {
  assert.equal(await listed(`?q=${idOf('c').slice(0, 20)}`), 'c');
});

for (const sort of ['createdAt', '-createdAt', 'lastActiveAt', '-lastActiveAt']) {
  test(`pages in the order ${sort} are the list`, async () => {
    const whole = await listed(`?sort=${sort}`);
    let [walked, after] = ['', ''];
    for (;;) {
      const query = `?sort=${sort}&limit=1${after}`;
      walked += await listed(query);
      const { body } = await get(query);
      if (body.nextCursor === null) break;
      after = `&after=${body.nextCursor}`;
    }
    assert.equal(walked, whole);
  });
}

test('a cursor of another order is refused', async () => {
  const { body } = await get('?sort=lastActiveAt&limit=1');
  await assertRefused(`?sort=createdAt&limit=1&after=${body.nextCursor}`, /^query\.after must be the nextCursor/);
});

for (const [query, reason] of [
  ['?status=deleted', /^query\.status\.0 must be one of "provisioning", .*"destroying", not "deleted"$/],
  ['?status=', /^query\.status\.0 must be one of /],
  [`?${'status=ready&'.repeat(9)}`, /^query\.status must have at most 8 entries, not 9$/],
  ['?q=', /^query\.q must be at least 1 character long, not 0$/],
  [`?q=${'x'.repeat(101)}`, /^query\.q must be at most 100 characters long/],
  ['?q=a&q=b', /^query\.q must be a string, not an array$/],
  ['?sort=name', /^query\.sort must be one of "createdAt", "-createdAt", "lastActiveAt", "-lastActiveAt", not "name"$/],
  ['?metadata=pro', /^query\.metadata must be an object, not "pro"$/],
  ['?metadata[__proto__]=1', /^query\.metadata must have no field __proto__$/],
  ['?metadata[a]=1&metadata[a]=2', /^query\.metadata\.a must be /],
  [`?metadata[${'k'.repeat(129)}]=1`, /query\.metadata/],
] as const) {
  test(`the list refuses ${query.slice(0, 40)} and names the allowed values`, async () => {
    await assertRefused(query, reason);
  });
}

test('a caller without access is refused before its query is read', async () => {
  const path = `/v1/orgs/${api.orgId}/sandboxes?metadata[__proto__]=1`;
  assert.equal((await api.call('GET', path, { token: null })).status, 401);
  assert.equal((await api.call('GET', path, { token: other.token })).status, 403);
});

test('labels named like object members are labels', async () => {
  for (const key of ['constructor', 'toString']) assert.equal(await listed(`?metadata[${key}]=x`), '');
});

test('counts are by status, of the same filters', async () => {
  assert.deepEqual((await get('', 'sandboxes/counts')).body, {
    total: 4,
    byStatus: { failed: 1, ready: 1, stopped: 2 },
  });
  assert.deepEqual((await get('?metadata[plan]=pro&q=web', 'sandboxes/counts')).body, {
    total: 2,
    byStatus: { ready: 1, stopped: 1 },
  });
  assert.deepEqual((await get('?endUserId=nobody', 'sandboxes/counts')).body, { total: 0, byStatus: {} });
});

test('filters and counts of an org read none of the sandboxes of others', async () => {
  const org = await api.makeOrg();
  await sql`
    insert into sandbox
      (id, org_id, project_id, name, agent, status, epoch, profile, persistence_policy, mode, metadata,
      allocated_vcpu, allocated_memory_gb, allocated_disk_gb, created_at)
    select 'sbx_' || gen_random_uuid(), ${org.orgId}, ${org.projectId}, 's', 'agent_one', 'stopped', 1,
      'agent-small', 'sleep_resume', 'persistent', '{}', 1, 1, 10, now() - n * interval '1 second'
    from generate_series(1, 5000) n`.execute(api.db);
  await sql`analyze sandbox`.execute(api.db);
  const { db, queries, explain } = openWatched(api.databaseUrl);
  const filter = { q: 's', metadata: { plan: 'pro' }, status: ['ready', 'stopped'] } as const;
  const page = { limit: 100, after: null };
  try {
    await listSandboxes(db, api.orgId, filter, { at: 'created_at', direction: 'desc', page });
    await listSandboxes(db, api.orgId, filter, { at: 'last_active_at', direction: 'desc', page });
    await countSandboxes(db, api.orgId, filter);
    assert.equal(queries.length, 3);
    for (const query of [...queries]) {
      const plan = await explain(query, 'run');
      const read = [...plan.matchAll(/"(?:Actual Rows|Rows Removed by Filter)":([\d.]+)/g)].map(([, n]) => Number(n));
      assert.ok(read.length > 0 && Math.max(...read) <= 10, plan);
    }
  } finally {
    await db.destroy();
  }
});
