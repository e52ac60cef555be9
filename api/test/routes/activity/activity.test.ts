// The activity feed: order, pages, filters, contents, and an index for every page.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ACTIVITY_PAGE, LIST_LIMIT } from '@berth/contract/route/limits.ts';
import { ROLE_PERMISSIONS, role } from '@berth/contract/route/permissions.ts';
import { sql } from 'kysely';
import { writeCursor } from '../../../src/rules/page.ts';
import { insertActivity, type NewActivity } from '../../../src/store/activity/activity.ts';
import { selectActivity, type FeedFilter } from '../../../src/store/activity/feed.ts';
import { addActivityPartition } from '../../../src/store/activity/partitions.ts';
import { newId } from '../../../src/store/database/ids.ts';
import { startApi, type Answer, type TestApi, type TestOrg } from '../../world/api.ts';
import { openWatched } from '../../world/watched-database.ts';

interface Entry {
  id: string;
  kind: string;
  sandboxId: string | null;
  projectId: string | null;
  orgId: string;
  reason: string | null;
  details: Record<string, unknown>;
}

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

const read = (org: TestOrg, query = ''): Promise<Answer> =>
  api.call('GET', `/v1/orgs/${org.orgId}/activity${query}`, { token: org.token });

/** Adds an entry like a service. */
async function add(org: TestOrg, changed: Partial<NewActivity> = {}): Promise<void> {
  await insertActivity(api.db, {
    orgId: org.orgId,
    actor: { kind: 'system', id: null, userId: null },
    kind: 'sandbox_running',
    ...changed,
  });
}

/** Reads the whole feed page by page; calls `between` after each page. */
async function readAllPages(
  org: TestOrg,
  query: string,
  between: () => Promise<unknown> = () => Promise.resolve(),
): Promise<Entry[]> {
  const entries: Entry[] = [];
  let cursor: string | null = null;
  do {
    const { status, body } = await read(org, `?${query}${cursor === null ? '' : `&after=${cursor}`}`);
    assert.equal(status, 200, JSON.stringify(body));
    entries.push(...body.activity);
    assert.equal(body.hasMore, body.nextCursor !== null);
    cursor = body.nextCursor;
    await between();
  } while (cursor !== null);
  return entries;
}

test('an entry has the event, subject, actor, request and reason', async () => {
  const org = await api.makeOrg();
  const { id } = await api.makeSandbox('ready', { org_id: org.orgId, project_id: org.projectId });
  const asked = await api.call('POST', `/v1/sandboxes/${id}/sleep`, {
    token: org.token,
    headers: { prefer: 'respond-async' },
  });
  const { activity } = (await read(org, `?sandboxId=${id}`)).body;
  const key = await api.db.selectFrom('api_key').selectAll().where('org_id', '=', org.orgId).executeTakeFirstOrThrow();
  assert.deepEqual(activity, [
    {
      id: activity[0].id,
      at: activity[0].at,
      kind: 'sandbox_sleep_requested',
      actor: { kind: 'api_key', id: key.id, userId: org.userId },
      subject: { kind: 'sandbox', id },
      orgId: org.orgId,
      projectId: org.projectId,
      sandboxId: id,
      reason: null,
      requestId: asked.headers.get('x-request-id'),
      details: { from: 'ready', to: 'sleeping' },
    },
  ]);
});

test('a reason text is a separate field; its code stays in the details', async () => {
  const org = await api.makeOrg();
  await add(org, { details: { reason: { code: 'host_lost', message: 'the host is gone' }, to: 'failed' } });
  await add(org, { details: { reason: 'nobody used it', to: 'stopped' } });
  await add(org, { details: { reason: null, to: 'ready' } });
  await add(org, { details: { reason: [1], to: 'odd' } });
  const entries: Entry[] = (await read(org, '?kind=sandbox_running')).body.activity;
  assert.deepEqual(
    entries.map(({ reason, details }) => [reason, details]),
    [
      [null, { reason: [1], to: 'odd' }],
      [null, { to: 'ready' }],
      ['nobody used it', { to: 'stopped' }],
      ['the host is gone', { reasonCode: 'host_lost', to: 'failed' }],
    ],
  );
});

test('entries of unknown kinds are in the feed', async () => {
  const org = await api.makeOrg();
  // The one that the org's key left.
  await sql`update activity set kind = 'sandbox_teleported' where org_id = ${org.orgId}`.execute(api.db);
  await add(org);
  const { status, body } = await read(org);
  assert.equal(status, 200);
  assert.deepEqual(
    body.activity.map(({ kind }: Entry) => kind),
    ['sandbox_running', 'sandbox_teleported'],
  );
  const unknown = await read(org, '?kind=sandbox_teleported');
  assert.equal(unknown.status, 400);
  assert.match(unknown.body.error.message, /^query\.kind must be one of "org_created", .*not "sandbox_teleported"$/);
});

test(`a page has ${ACTIVITY_PAGE.default} entries by default, up to ${LIST_LIMIT.max} with limit`, async () => {
  const org = await api.makeOrg();
  await fill(org, ACTIVITY_PAGE.default + 1);
  const whole = await read(org, `?limit=${LIST_LIMIT.max}`);
  assert.deepEqual(
    [whole.body.nextCursor, whole.body.hasMore, whole.body.activity.length],
    [null, false, ACTIVITY_PAGE.default + 2],
  );
  const first = await read(org);
  assert.deepEqual(first.body.activity, whole.body.activity.slice(0, ACTIVITY_PAGE.default));
  assert.equal(first.body.hasMore, true);
  const second = await read(org, `?after=${first.body.nextCursor}`);
  assert.deepEqual(second.body.activity, whole.body.activity.slice(ACTIVITY_PAGE.default));
  assert.equal(second.body.nextCursor, null);
  for (const limit of ['0', String(LIST_LIMIT.max + 1), '-1', '1.5', 'all', '']) {
    const refused = await read(org, `?limit=${limit}`);
    assert.equal(refused.status, 400, limit);
    assert.match(refused.body.error.message, /query\.limit must be an integer from 1 to 1000/);
  }
});

test('an invalid or foreign cursor is 400 and named', async () => {
  const place = { atMicroseconds: 1_790_000_000_000_000, tie: '5' };
  const good = writeCursor('activity', place);
  assert.equal((await read(api, `?after=${good}`)).status, 200);
  const wrong = [
    'x',
    good.slice(1),
    `${good}A`,
    writeCursor('sandboxes', { ...place, tie: 'sbx_a' }),
    writeCursor('activity', { ...place, tie: 'act_a' }),
    writeCursor('activity', { ...place, tie: '99999999999999999999' }),
    '%00',
    'a'.repeat(200),
  ];
  for (const cursor of wrong) {
    const { status, body } = await read(api, `?after=${cursor}`);
    assert.equal(status, 400, cursor);
    assert.equal(body.error.message, 'query.after must be the nextCursor of an earlier page of this list');
  }
  // Validated before the filters, which match nothing.
  assert.equal((await read(api, '?after=x&projectId=none')).status, 400);
});

test('paging returns every entry once, newest first, despite equal instants and new entries', async () => {
  const org = await api.makeOrg();
  // A single transaction: equal instants, in insertion order.
  const kinds = [
    'sandbox_created',
    'sandbox_running',
    'sandbox_ready',
    'sandbox_stopped',
    'sandbox_woken',
    'sandbox_deleted',
  ] as const;
  await api.db.transaction().execute(async (trx) => {
    for (const kind of kinds)
      await insertActivity(trx, { orgId: org.orgId, actor: { kind: 'system', id: null, userId: null }, kind });
  });
  await fill(org, 9);
  const { activity: whole } = (await read(org, `?limit=${LIST_LIMIT.max}`)).body as { activity: Entry[] };
  assert.equal(whole.length, 16);
  assert.deepEqual(
    whole.slice(-7, -1).map(({ kind }) => kind),
    kinds.toReversed(),
  );
  const ids = whole.map(({ id }) => id);
  for (let limit = 1; limit <= 17; limit += 1) {
    const walked = await readAllPages(org, `limit=${limit}`, () => add(org, { kind: 'sandbox_exec' }));
    const present = walked.map(({ id }) => id).filter((id) => ids.includes(id));
    assert.deepEqual(present, ids, `limit ${limit}`);
    assert.equal(new Set(walked.map(({ id }) => id)).size, walked.length, 'none came twice');
  }
});

test('filters combine; a project or sandbox of another org yields nothing', async () => {
  const [org, other] = [await api.makeOrg(), await api.makeOrg()];
  const projects = [org.projectId, newId('project')];
  const sandboxes = [newId('sandbox'), newId('sandbox')];
  for (const projectId of projects) {
    for (const sandboxId of sandboxes)
      for (const kind of ['sandbox_running', 'sandbox_exec'] as const) await add(org, { projectId, sandboxId, kind });
  }
  const [project = '', sandbox = ''] = [projects[0], sandboxes[0]];
  const counts = async (of: TestOrg, query: string): Promise<number> =>
    (await readAllPages(of, `limit=2&${query}`)).length;
  assert.equal(await counts(org, 'kind=sandbox_exec'), 4);
  assert.equal(await counts(org, `projectId=${project}`), 4);
  assert.equal(await counts(org, `sandboxId=${sandbox}`), 4);
  assert.equal(await counts(org, `projectId=${project}&sandboxId=${sandbox}`), 2);
  assert.equal(await counts(org, `projectId=${project}&kind=sandbox_exec`), 2);
  assert.equal(await counts(org, `sandboxId=${sandbox}&kind=sandbox_exec`), 2);
  assert.equal(await counts(org, `projectId=${project}&sandboxId=${sandbox}&kind=sandbox_exec`), 1);
  for (const query of [
    `projectId=${project}`,
    `sandboxId=${sandbox}`,
    `projectId=${project}&sandboxId=${sandbox}`,
    `projectId=${other.projectId}&sandboxId=${sandbox}`,
    'projectId=none',
    'sandboxId=%00',
    `projectId=%00&kind=sandbox_exec`,
    `sandboxId=${newId('sandbox')}`,
  ]) {
    const { status, body } = await read(other, `?${query}`);
    assert.deepEqual([status, body], [200, { activity: [], nextCursor: null, hasMore: false }], query);
  }
});

test("an org's feed has only its entries and needs activity.read", async () => {
  const other = await api.makeOrg();
  await add(other);
  assert.ok((await readAllPages(api, 'limit=1000')).every(({ orgId }) => orgId === api.orgId));
  assert.equal((await api.call('GET', `/v1/orgs/${other.orgId}/activity`)).body.error.code, 'org_access_denied');
  for (const name of role.options) {
    const { token } = await api.makeSession({ role: name });
    const answer = await api.call('GET', `/v1/orgs/${api.orgId}/activity`, { token });
    assert.equal(answer.status, ROLE_PERMISSIONS[name].has('activity.read') ? 200 : 403, name);
  }
  const scoped = await api.makeKey({ scopes: ['sandbox.read'] });
  assert.equal(
    (await api.call('GET', `/v1/orgs/${api.orgId}/activity`, { token: scoped })).body.error.code,
    'permission_denied',
  );
});

/**
 * Adds entries at an interval in one statement: 40 sandboxes, 4 projects, 5 kinds, one of them
 * rare.
 */
async function fill(org: TestOrg, rows: number, interval = '1 millisecond'): Promise<void> {
  await sql`
    insert into activity (id, org_id, project_id, sandbox_id, actor_kind, kind, details, at, subject_kind, subject_id)
    select 'act_' || gen_random_uuid(), ${org.orgId}, ${org.projectId} || n % 4,
      'sbx_' || ${org.orgId} || n % 40, 'system',
      case when n % 997 = 0 then 'plan_changed'
        else (array['sandbox_exec', 'sandbox_running', 'sandbox_stopped', 'sandbox_woken'])[1 + n / 40 % 4] end,
      '{}', now() + n * ${interval}::interval, 'org', ${org.orgId}
    from generate_series(1, ${rows}::int) n`.execute(api.db);
}

test('with 50,000 entries every page with any filters is one indexed query', async () => {
  const [large, small] = [await api.makeOrg(), await api.makeOrg()];
  // Over several months, so over every partition.
  await addActivityPartition(api.db);
  await fill(large, 45_000, '4 minutes');
  await fill(small, 5_000, '36 minutes');
  await sql`analyze activity`.execute(api.db);

  const { db, queries, explain } = openWatched(api.databaseUrl);
  const checkPlans = async (filter: FeedFilter, limit: number): Promise<number> => {
    queries.length = 0;
    const first = await selectActivity(db, filter, { limit, after: null });
    if (first.next !== null) await selectActivity(db, filter, { limit, after: first.next });
    const run = [...queries];
    assert.equal(run.length, first.next === null ? 1 : 2, 'a page is one query');
    for (const query of run) {
      const plan = await explain(query);
      const about = `${JSON.stringify({ ...filter, limit })}: ${plan}`;
      assert.doesNotMatch(plan, /Seq Scan/, about);
      assert.match(
        plan,
        /"Index Name":"activity_\w+_(org_id|org_id_kind|project_id|project_id_kind|sandbox_id)_at_seq_idx"/,
        about,
      );
    }
    return run.length;
  };
  try {
    let pages = 0;
    for (const org of [large, small]) {
      const filters = [undefined, 'sandbox_exec', 'plan_changed', 'org_created'].flatMap((kind) =>
        [undefined, `${org.projectId}1`, `${small.projectId}1`, newId('project')].flatMap((projectId) =>
          [undefined, `sbx_${org.orgId}5`, newId('sandbox')].map((sandboxId): FeedFilter => {
            return { orgId: org.orgId, kind, projectId, sandboxId };
          }),
        ),
      );
      for (const filter of filters)
        for (const limit of [1, ACTIVITY_PAGE.default, LIST_LIMIT.max]) pages += await checkPlans(filter, limit);
    }
    assert.ok(pages > 2 * 4 * 4 * 3 * 3, `${pages} pages were looked at`);
  } finally {
    await db.destroy();
  }
});

test('a deep page of a long feed reads no more entries than it returns', async () => {
  const org = await api.makeOrg();
  await fill(org, 20_000);
  await sql`analyze activity`.execute(api.db);
  const { db, queries, explain } = openWatched(api.databaseUrl);
  try {
    const middle = await api.db
      .selectFrom('activity')
      .select(['seq', sql<string>`(extract(epoch from at) * 1000000)::bigint`.as('micros')])
      .where('org_id', '=', org.orgId)
      .orderBy('at')
      .offset(10_000)
      .limit(1)
      .executeTakeFirstOrThrow();
    const after = { atMicroseconds: Number(middle.micros), tie: middle.seq };
    const { rows } = await selectActivity(db, { orgId: org.orgId }, { limit: 50, after });
    assert.equal(rows.length, 50);
    const [query] = queries;
    assert.ok(query);
    const plan = await explain(query, 'run');
    const read = [...plan.matchAll(/"Actual Rows":([\d.]+)/g)].map(([, count]) => Number(count));
    assert.ok(read.length > 0 && Math.max(...read) <= 51, plan);
    assert.doesNotMatch(plan, /Rows Removed by Filter/);
  } finally {
    await db.destroy();
  }
});
