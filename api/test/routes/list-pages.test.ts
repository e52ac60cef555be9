// Every paged list: whole in the spec's shape without `limit` and `after`, and the same list in
// pages with them.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { LIST_LIMIT } from '@berth/contract/route/limits.ts';
import { ROUTES } from '@berth/contract/routes.ts';
import fc from 'fast-check';
import { sql } from 'kysely';
import { writeCursor, type PagedList } from '../../src/rules/page.ts';
import { insertMembership } from '../../src/store/people/identity.ts';
import { newId } from '../../src/store/database/ids.ts';
import { listSandboxes } from '../../src/store/sandboxes/list.ts';
import { signInAs, startApi, type Answer, type TestApi, type TestOrg } from '../world/api.ts';
import { openWatched } from '../world/watched-database.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

/**
 * Owner of a list: a new org for each run, with a sign-in session of its owner, who also holds the
 * agent tokens.
 */
interface Place extends TestOrg {
  session: string;
  /** Sandbox of the listed previews. */
  sandboxId: string;
}

interface List {
  path(place: Place): string;
  /** Field of the list; default: the list's name. */
  field?: string;
  /** Field that identifies an entry. */
  key: string;
  /** Adds an entry of the instant, to the microsecond. */
  add(place: Place, at: ReturnType<typeof instant>): Promise<unknown>;
  /** Number of entries of a new place. */
  own: number;
}

const BASE = '2026-01-31T08:15:30.25';
/** Instants a microsecond apart: reading by milliseconds would mix them up. */
const instant = (microseconds: number) =>
  sql<Date>`${BASE}::timestamptz + ${microseconds}::int * interval '1 microsecond'`;

const addAgentToken: List['add'] = ({ userId }, at) =>
  api.db
    .insertInto('agent_token')
    .values({
      id: newId('agentToken'),
      user_id: userId,
      name: 't',
      token_sha256: randomBytes(32),
      token_prefix: 'bat_aaaaaa',
      access: 'read_send',
      can_approve: false,
      can_wake: false,
      created_at: at,
      expires_at: sql<Date>`now() + interval '1 day'`,
    })
    .execute();

const LISTS: {
  readonly [
    list in Exclude<
      PagedList,
      'activeSandboxes' | 'activity' | 'activityExport' | 'activityFollow' | 'agentSessions' | 'hosts' | 'hostSandboxes'
    >
  ]: List;
} = {
  signIns: {
    path: () => '/v1/me/sign-ins',
    key: 'id',
    own: 1,
    add: async (place, at) => {
      const { loginId } = await signInAs(api.db, place.userId);
      await api.db.updateTable('session').set({ createdAt: at }).where('id', '=', loginId).execute();
    },
  },
  sandboxes: {
    path: ({ orgId }) => `/v1/orgs/${orgId}/sandboxes`,
    key: 'id',
    own: 0,
    add: async (place, at) => {
      const { id } = await api.makeSandbox('ready', { org_id: place.orgId, project_id: place.projectId });
      await api.db.updateTable('sandbox').set({ created_at: at }).where('id', '=', id).execute();
    },
  },
  projects: {
    path: ({ orgId }) => `/v1/orgs/${orgId}/projects`,
    key: 'id',
    own: 1,
    add: (place, at) =>
      api.db
        .insertInto('project')
        .values({
          id: newId('project'),
          org_id: place.orgId,
          name: 'p',
          use_case: 'internal',
          created_by: place.userId,
          created_at: at,
        })
        .execute(),
  },
  members: {
    path: ({ orgId }) => `/v1/orgs/${orgId}/members`,
    key: 'userId',
    own: 1,
    add: async (place, at) => {
      const userId = newId('user');
      await api.db
        .insertInto('user')
        .values({ id: userId, name: '', email: `${userId}@example.test`, emailVerified: true })
        .execute();
      await api.db
        .insertInto('membership')
        .values({ org_id: place.orgId, user_id: userId, role: 'viewer', created_at: at })
        .execute();
    },
  },
  invitations: {
    path: ({ orgId }) => `/v1/orgs/${orgId}/invitations`,
    key: 'id',
    own: 0,
    add: (place, at) =>
      api.db
        .insertInto('invitation')
        .values({
          id: newId('invitation'),
          org_id: place.orgId,
          email: `${newId('user')}@example.test`,
          role: 'member',
          invited_by: place.userId,
          created_at: at,
          expires_at: sql<Date>`now() + interval '1 day'`,
        })
        .execute(),
  },
  apiKeys: {
    path: ({ orgId }) => `/v1/orgs/${orgId}/api-keys`,
    key: 'id',
    own: 1,
    add: (place, at) =>
      api.db
        .insertInto('api_key')
        .values({
          id: newId('apiKey'),
          org_id: place.orgId,
          created_by: place.userId,
          name: 'k',
          token_sha256: randomBytes(32),
          token_prefix: 'brt_aaaaaa',
          created_at: at,
        })
        .execute(),
  },
  previews: {
    path: ({ sandboxId }) => `/v1/sandboxes/${sandboxId}/previews`,
    key: 'id',
    own: 0,
    add: (place, at) =>
      api.db
        .insertInto('preview_link')
        .values({
          id: newId('previewLink'),
          sandbox_id: place.sandboxId,
          org_id: place.orgId,
          project_id: place.projectId,
          port: 3_000,
          label: null,
          end_user_id: null,
          created_by: place.userId,
          created_at: at,
          expires_at: sql<Date>`date_trunc('milliseconds', now() + interval '1 day')`,
        })
        .execute(),
  },
  agentTokens: {
    path: () => '/v1/me/agent-tokens',
    key: 'id',
    own: 0,
    add: addAgentToken,
  },
  orgAgentTokens: {
    path: ({ orgId }) => `/v1/orgs/${orgId}/agent-tokens`,
    field: 'agentTokens',
    key: 'id',
    own: 0,
    add: addAgentToken,
  },
};

type Name = keyof typeof LISTS;
const names = Object.keys(LISTS) as Name[];

async function makePlace(): Promise<Place> {
  const org = await api.makeOrg();
  // In another org, so that the list of sandboxes is empty.
  const other = await api.makeOrg();
  await insertMembership(api.db, { orgId: other.orgId, userId: org.userId, role: 'owner' });
  const { id: sandboxId } = await api.makeSandbox('ready', { org_id: other.orgId, project_id: other.projectId });
  return { ...org, sandboxId, session: (await signInAs(api.db, org.userId)).token };
}

const get = (name: Name, place: Place, query = ''): Promise<Answer> =>
  api.call('GET', LISTS[name].path(place) + query, { token: place.session });
const fieldOf = (name: Name): string => LISTS[name].field ?? name;
const keysOf = (name: Name, { body }: Answer): string[] =>
  body[fieldOf(name)].map((entry: Record<string, string>) => entry[LISTS[name].key]);

test('this file covers every paged list of the contract except those that always have pages', () => {
  const paged = ROUTES.filter(
    ({ name, path, request }) =>
      request.query?.shape['limit'] !== undefined &&
      !name.endsWith('Activity') &&
      !/\/(agent-sessions|service)/.test(path),
  );
  const paths = paged.map(({ path }) => path.replace(/\{\w+\}/, 'org'));
  const known = names.map((name) =>
    LISTS[name].path({ orgId: 'org', projectId: '', userId: '', token: '', session: '', sandboxId: 'org' }),
  );
  assert.deepEqual(paths.toSorted(), known.toSorted());
});

for (const name of names) {
  test(`${name}: paging with any limit returns the whole list in order, despite insertions`, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 9 }),
        fc.array(fc.integer({ min: -1, max: 4 }), { maxLength: 4 }),
        fc.integer({ min: 1, max: 11 }),
        async (present, later, limit) => {
          const place = await makePlace();
          for (const at of present) await LISTS[name].add(place, instant(at));
          const whole = await get(name, place);
          const expected = keysOf(name, whole);
          assert.equal(expected.length, present.length + LISTS[name].own);

          const walked: string[] = [];
          let query = `?limit=${limit}`;
          for (;;) {
            const page = await get(name, place, query);
            const keys = keysOf(name, page);
            walked.push(...keys);
            assert.ok(keys.length === limit || page.body.hasMore === false, 'a page is full unless it is the last');
            assert.equal(page.body.hasMore, page.body.nextCursor !== null);
            if (page.body.nextCursor === null) break;
            query = `?limit=${limit}&after=${page.body.nextCursor}`;
            const come = later.pop();
            if (come !== undefined) await LISTS[name].add(place, instant(come));
          }
          assert.deepEqual(
            walked.filter((key) => expected.includes(key)),
            expected,
          );
          assert.equal(new Set(walked).size, walked.length, 'none came twice');
        },
      ),
      { numRuns: 12 },
    );
  });

  test(`${name}: without limit and after the response is the list only; with either it has page fields`, async () => {
    const place = await makePlace();
    const field = fieldOf(name);
    for (const at of [1, 2, 2]) await LISTS[name].add(place, instant(at));
    const whole = await get(name, place);
    assert.deepEqual(Object.keys(whole.body), [field]);
    const all = whole.body[field];
    const first = await get(name, place, '?limit=1');
    assert.deepEqual(first.body, { [field]: all.slice(0, 1), nextCursor: first.body.nextCursor, hasMore: true });
    const rest = await get(name, place, `?after=${first.body.nextCursor}`);
    assert.deepEqual(rest.body, { [field]: all.slice(1), nextCursor: null, hasMore: false });
    const exact = await get(name, place, `?limit=${all.length}`);
    assert.deepEqual(exact.body, { [field]: all, nextCursor: null, hasMore: false });
  });

  test(`${name}: a limit out of range or a foreign cursor is 400 and names the allowed values`, async () => {
    const place = await makePlace();
    for (const limit of ['0', String(LIST_LIMIT.max + 1), '-1', 'x', '']) {
      const { status, body } = await get(name, place, `?limit=${limit}`);
      assert.equal(status, 400);
      assert.match(body.error.message, /query\.limit must be an integer from 1 to 1000/);
    }
    const other = name === 'sandboxes' ? 'projects' : 'sandboxes';
    for (const cursor of ['x', '%00', writeCursor(other, { atMicroseconds: 1, tie: 'prj_a' })]) {
      const { status, body } = await get(name, place, `?after=${cursor}`);
      assert.equal(status, 400);
      assert.equal(body.error.message, 'query.after must be the nextCursor of an earlier page of this list');
    }
  });
}

test("a page of sandboxes keeps the endUserId filter; a cursor also works in another org's list", async () => {
  const [place, other] = [await makePlace(), await makePlace()];
  for (const endUserId of ['a', 'b', 'a', 'b', 'a'])
    await api.makeSandbox('ready', { org_id: place.orgId, project_id: place.projectId, end_user_id: endUserId });
  const first = await get('sandboxes', place, '?endUserId=a&limit=2');
  const rest = await get('sandboxes', place, `?endUserId=a&limit=2&after=${first.body.nextCursor}`);
  assert.deepEqual(
    [...first.body.sandboxes, ...rest.body.sandboxes].map(({ endUserId }) => endUserId),
    ['a', 'a', 'a'],
  );
  assert.equal(rest.body.hasMore, false);
  // The cursor is a position and grants nothing.
  assert.deepEqual((await get('sandboxes', other, `?after=${first.body.nextCursor}`)).body.sandboxes, []);
});

test("a page of sandboxes is read from the order's index, however many exist", async () => {
  const place = await makePlace();
  await sql`
    insert into sandbox
      (id, org_id, project_id, name, agent, status, epoch, profile, persistence_policy, mode, metadata,
      allocated_vcpu, allocated_memory_gb, allocated_disk_gb, created_at)
    select 'sbx_' || gen_random_uuid(), ${place.orgId}, ${place.projectId}, 's', 'agent_one', 'stopped', 1,
      'agent-small', 'sleep_resume', 'persistent', '{}', 1, 1, 10, now() - n * interval '1 second'
    from generate_series(1, 20000) n`.execute(api.db);
  await sql`analyze sandbox`.execute(api.db);
  const page = await get('sandboxes', place, '?limit=100');
  const next = await get('sandboxes', place, `?limit=100&after=${page.body.nextCursor}`);
  assert.equal(new Set([...keysOf('sandboxes', page), ...keysOf('sandboxes', next)]).size, 200);
  const { db, queries, explain } = openWatched(api.databaseUrl);
  try {
    const middle = { atMicroseconds: (Date.now() - 10_000_000) * 1_000, tie: 'sbx_a' };
    const { rows } = await listSandboxes(
      db,
      place.orgId,
      {},
      { at: 'created_at', direction: 'desc', page: { limit: 100, after: middle } },
    );
    assert.equal(rows.length, 100);
    const [query] = queries;
    assert.ok(query);
    const plan = await explain(query, 'run');
    assert.match(plan, /"Index Name":"sandbox_org_live"/);
    const read = [...plan.matchAll(/"Actual Rows":([\d.]+)/g)].map(([, count]) => Number(count));
    assert.ok(read.length > 0 && Math.max(...read) <= 101, plan);
  } finally {
    await db.destroy();
  }
});
