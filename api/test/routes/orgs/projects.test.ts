// Projects over HTTP with a real database: read, update, delete, deleted projects, and the race of
// deletes with creates.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Project } from '@berth/contract/orgs/projects.ts';
import { sandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { sql } from 'kysely';
import { startApi, type Answer, type CallOptions, type TestApi, type TestSession } from '../../world/api.ts';
import { untilTrue } from '../../../../os/test/until.ts';
import { lockWaiters } from '../../world/lock-waiters.ts';

let api: TestApi;
let admin: TestSession;
before(async () => {
  api = await startApi({ durable: false });
  admin = await api.makeSession({ role: 'admin' });
});
after(() => api.close());

const pathOf = (id: string): string => `/v1/orgs/${api.orgId}/projects/${id}`;
const make = async (body: object = {}): Promise<Project> => {
  const answer = await api.call('POST', `/v1/orgs/${api.orgId}/projects`, { body });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return answer.body.project;
};
const get = (id: string, options: CallOptions = {}): Promise<Answer> => api.call('GET', pathOf(id), options);
const patch = (id: string, body: object): Promise<Answer> => api.call('PATCH', pathOf(id), { body });
const remove = (id: string, token: string = admin.token): Promise<Answer> => api.call('DELETE', pathOf(id), { token });
const createIn = (projectId: string, idempotencyKey?: string): Promise<Answer> =>
  api.call('POST', `/v1/orgs/${api.orgId}/sandboxes`, {
    body: { agent: 'agent_one', projectId },
    headers: {
      prefer: 'respond-async',
      ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
    },
  });
const list = (query = ''): Promise<Answer> => api.call('GET', `/v1/orgs/${api.orgId}/projects${query}`);
const sandboxesOf = (projectId: string) =>
  api.db.selectFrom('sandbox').selectAll().where('project_id', '=', projectId).execute();
const feedOf = (projectId: string, kind: string) =>
  api.db
    .selectFrom('activity')
    .selectAll()
    .where('project_id', '=', projectId)
    .where('kind', '=', kind)
    .orderBy('seq')
    .execute();
const waiters = async (count: number): Promise<void> =>
  await untilTrue(`${count} calls wait for a lock`, async () => {
    return (await lockWaiters(api.db)) === count;
  });

const FULL = {
  name: 'Full',
  useCase: 'external',
  defaultProfile: 'build-heavy',
  defaultPersistencePolicy: 'always_on',
  defaultRepository: 'acme/web.site',
  defaultBranch: 'release/2.x',
  defaultIdleMinutes: 5,
  wakeOnUse: true,
  agentApprovals: 'never' as const,
  metadata: { team: 'core', tier: 2, live: true },
};

test('a project has all given fields and its creator, and reads back as returned', async () => {
  for (const token of [api.token, admin.token]) {
    const made = await api.call('POST', `/v1/orgs/${api.orgId}/projects`, { token, body: FULL });
    assert.equal(made.status, 201);
    const { id, createdAt, updatedAt, ...rest } = made.body.project;
    assert.deepEqual(rest, {
      ...FULL,
      orgId: api.orgId,
      sandboxMachineHourLimit: null,
      defaultEgress: null,
      hasRepoCredentials: false,
      deletedAt: null,
    });
    assert.equal(updatedAt, createdAt);
    assert.deepEqual((await get(id)).body, made.body);
    assert.deepEqual((await list()).body.projects[0], made.body.project);
    const [entry] = await feedOf(id, 'project_created');
    assert.deepEqual(
      [entry?.actor_kind, entry?.details],
      [token === api.token ? 'api_key' : 'session', { name: 'Full' }],
    );
  }
});

test('projects are listed newest first, with optional paging that is stable under changes', async () => {
  const org = await api.makeOrg();
  const call = async (query: string) =>
    (await api.call('GET', `/v1/orgs/${org.orgId}/projects${query}`, { token: org.token })).body;
  const ids = [org.projectId];
  for (let index = 0; index < 5; index += 1) {
    const made = await api.call('POST', `/v1/orgs/${org.orgId}/projects`, { token: org.token, body: {} });
    ids.unshift(made.body.project.id);
  }
  const whole = await call('');
  assert.deepEqual([Object.keys(whole), whole.projects.map((project: Project) => project.id)], [['projects'], ids]);

  const first = await call('?limit=2');
  await api.call('POST', `/v1/orgs/${org.orgId}/projects`, { token: org.token, body: {} });
  // Deletes the last entry of the previous page and the first of the next.
  await api.db.updateTable('project').set({ deleted_at: new Date() }).where('id', 'in', ids.slice(1, 3)).execute();
  const second = await call(`?limit=2&after=${first.nextCursor}`);
  const third = await call(`?after=${second.nextCursor}`);
  const pages = [first, second, third].map(({ projects, hasMore }) => [
    projects.map((project: Project) => project.id),
    hasMore,
  ]);
  assert.deepEqual(pages, [
    [[ids[0], ids[1]], true],
    [[ids[3], ids[4]], true],
    [[ids[5]], false],
  ]);
  assert.equal(third.nextCursor, null);
});

test('an invalid page is 400 and names the allowed values', async () => {
  for (const [query, message] of [
    ['?limit=0', /^query\.limit must be an integer from 1 to 1000$/],
    ['?limit=1001', /^query\.limit must be an integer from 1 to 1000$/],
    ['?limit=ten', /^query\.limit must be an integer from 1 to 1000$/],
    ['?after=prj_a', /^query\.after must be the nextCursor of an earlier page of this list$/],
  ] as const) {
    const answer = await list(query);
    assert.deepEqual([answer.status, answer.body.error.code], [400, 'invalid_request']);
    assert.match(answer.body.error.message, message);
  }
});

test('an update sets given fields, null clears, metadata is replaced, unknown fields are ignored', async () => {
  const made = await make(FULL);
  const first = await patch(made.id, {
    name: 'Renamed',
    wakeOnUse: false,
    agentApprovals: 'ask',
    color: 'red',
    sandboxMachineHourLimit: null,
  });
  assert.equal(first.status, 200);
  assert.deepEqual(first.body.project, {
    ...made,
    name: 'Renamed',
    wakeOnUse: false,
    agentApprovals: 'ask',
    updatedAt: first.body.project.updatedAt,
  });
  const cleared = {
    defaultProfile: null,
    defaultPersistencePolicy: null,
    defaultRepository: null,
    defaultBranch: null,
    defaultIdleMinutes: null,
  };
  const second = await patch(made.id, { ...cleared, metadata: { other: 'x' }, useCase: 'internal' });
  assert.deepEqual(second.body.project, {
    ...first.body.project,
    ...cleared,
    metadata: { other: 'x' },
    useCase: 'internal',
    updatedAt: second.body.project.updatedAt,
  });
  assert.deepEqual((await get(made.id)).body, second.body);
  assert.deepEqual((await patch(made.id, { metadata: {} })).body.project.metadata, {});
});

test('a useCase that is external in another spelling is 400 at create and update, and changes nothing', async () => {
  const { id } = await make({ useCase: 'ci' });
  for (const useCase of ['External', 'EXTERNAL', ' external', 'external\t']) {
    for (const answer of [
      await api.call('POST', `/v1/orgs/${api.orgId}/projects`, { body: { useCase } }),
      await patch(id, { useCase }),
    ]) {
      assert.equal(answer.status, 400, useCase);
      assert.match(answer.body.error.message, /^body\.useCase must be spelled "external", in lower case/);
    }
  }
  assert.equal((await get(id)).body.project.useCase, 'ci');
  assert.equal((await patch(id, { useCase: 'external' })).body.project.useCase, 'external');
});

test('each field can be updated alone, and the feed has field, old and new value, and actor', async () => {
  const changed = {
    ...FULL,
    name: 'Other',
    useCase: 'ci',
    defaultProfile: 'auto',
    defaultPersistencePolicy: 'sleep_resume',
  };
  Object.assign(changed, {
    defaultRepository: 'a/b',
    defaultBranch: 'main',
    defaultIdleMinutes: 0,
    wakeOnUse: false,
    agentApprovals: 'ask',
    metadata: { a: 1 },
  });
  const { id } = await make(FULL);
  for (const [field, to] of Object.entries(changed)) {
    const answer = await patch(id, { [field]: to });
    const from = FULL[field as keyof typeof FULL];
    const entry = (await feedOf(id, 'project_updated')).at(-1);
    assert.deepEqual(answer.body.project[field], to);
    assert.deepEqual(entry?.details, { fields: [field], changes: { [field]: { from, to } } });
    assert.deepEqual([entry?.subject_kind, entry?.subject_id, entry?.actor_user_id], ['project', id, api.userId]);
    assert.equal(entry?.request_id, answer.headers.get('x-request-id'));
  }
  await patch(id, { name: 'Again', useCase: 'ci', defaultBranch: null });
  assert.deepEqual((await feedOf(id, 'project_updated')).at(-1)?.details, {
    fields: ['name', 'defaultBranch'],
    changes: { name: { from: 'Other', to: 'Again' }, defaultBranch: { from: 'main', to: null } },
  });
});

test('an update without effect leaves updatedAt and the feed; any other moves updatedAt', async () => {
  const made = await make(FULL);
  const { metadata } = FULL;
  for (const body of [
    {},
    FULL,
    { metadata: { live: metadata.live, tier: 2, team: 'core' } },
    { sandboxMachineHourLimit: null },
    { repoCredentials: null },
  ])
    assert.deepEqual((await patch(made.id, body)).body.project, made, JSON.stringify(body));

  assert.deepEqual(await feedOf(made.id, 'project_updated'), []);
  const { rows } = await sql<{
    before: string;
  }>`select updated_at::text as before from project where id = ${made.id}`.execute(api.db);
  await patch(made.id, { name: 'x' });
  const later = await sql<{ moved: boolean }>`
    select updated_at > ${rows[0]?.before}::timestamptz and updated_at > created_at as moved
    from project where id = ${made.id}`.execute(api.db);
  assert.equal(later.rows[0]?.moved, true);
});

test('concurrent updates are all kept, and the feed records them in sequence', async () => {
  const { id } = await make({ name: 'n0' });
  const names = Array.from({ length: 12 }, (_, index) => `n${index + 1}`);
  const answers = await Promise.all([
    ...names.map((name) => patch(id, { name })),
    patch(id, { useCase: 'ci' }),
    patch(id, { wakeOnUse: true }),
  ]);
  assert.ok(answers.every(({ status }) => status === 200));
  const now = (await get(id)).body.project;
  assert.deepEqual([now.useCase, now.wakeOnUse], ['ci', true]);
  const renames = (await feedOf(id, 'project_updated')).map(
    (row) => row.details['changes'] as Record<string, { from: string; to: string }>,
  );
  let name = 'n0';
  for (const change of renames.flatMap((changes) => changes['name'] ?? [])) {
    assert.equal(change.from, name);
    name = change.to;
  }
  assert.equal(now.name, name);
  assert.equal(
    now.updatedAt,
    answers
      .map(({ body }) => body.project.updatedAt as string)
      .toSorted()
      .at(-1),
  );
});

test('a member updates but cannot delete a project; operator and viewer do neither; keys cannot delete', async () => {
  const { id } = await make();
  for (const [role, changes, deletes] of [
    ['member', 200, 403],
    ['operator', 403, 403],
    ['viewer', 403, 403],
  ] as const) {
    const { token } = await api.makeSession({ role });
    assert.equal((await get(id, { token })).status, 200);
    assert.equal((await api.call('PATCH', pathOf(id), { token, body: { name: role } })).status, changes);
    const refused = await remove(id, token);
    assert.deepEqual([refused.status, refused.body.error.code], [deletes, 'permission_denied']);
    assert.match(refused.body.error.message, /project\.delete/);
  }
  const byKey = await remove(id, api.token);
  assert.deepEqual([byKey.status, byKey.body.error.code], [403, 'auth_kind_not_allowed']);
  assert.equal((await get(id)).status, 200);
});

test('a project with undeleted sandboxes cannot be deleted: 409 with their number', async () => {
  const { id } = await make({ repoCredentials: { token: 't0ken' } });
  let count = 0;
  for (const status of sandboxStatus.options) {
    await api.makeSandbox(status, { project_id: id });
    if (status !== 'deleted') count += 1;
    if (count === 0) continue;
    const answer = await remove(id);
    assert.deepEqual([answer.status, answer.body.error.code], [409, 'project_has_sandboxes']);
    const sandboxes = count === 1 ? '1 sandbox' : `${count} sandboxes`;
    assert.equal(
      answer.body.error.message,
      `the project still has ${sandboxes}; destroy ${count === 1 ? 'it' : 'them'} first`,
    );
  }
  assert.deepEqual(
    [(await get(id)).body.project.deletedAt, (await get(id)).body.project.hasRepoCredentials],
    [null, true],
  );
  assert.deepEqual(await feedOf(id, 'project_deleted'), []);
  await api.db
    .updateTable('sandbox')
    .set({ status: 'deleted', deleted_at: new Date() })
    .where('project_id', '=', id)
    .execute();
  assert.equal((await remove(id)).status, 200);
});

test('a deleted project is 404 in its org, 403 elsewhere; its name is free and its rows stay', async () => {
  const made = await make({ name: 'Short-lived' });
  await api.makeSandbox('deleted', { project_id: made.id });
  const deleted = await remove(made.id);
  assert.equal(deleted.status, 200);
  const { deletedAt, updatedAt } = deleted.body.project;
  assert.deepEqual(deleted.body.project, { ...made, deletedAt, updatedAt });
  assert.equal(updatedAt, deletedAt);
  assert.ok(deletedAt >= made.createdAt);

  const other = await api.makeOrg();
  for (const answer of [await get(made.id), await patch(made.id, { name: 'x' }), await remove(made.id)])
    assert.deepEqual([answer.status, answer.body.error.code], [404, 'project_not_found']);
  for (const path of [pathOf(made.id), `/v1/orgs/${other.orgId}/projects/${made.id}`]) {
    const answer = await api.call('GET', path, { token: other.token });
    assert.deepEqual([answer.status, answer.body.error.code], [403, 'org_access_denied']);
  }
  assert.equal(
    (await list()).body.projects.some((project: Project) => project.id === made.id),
    false,
  );
  const refused = await createIn(made.id);
  assert.deepEqual([refused.status, refused.body.error.code], [400, 'unknown_project']);

  assert.notEqual((await make({ name: 'Short-lived' })).id, made.id);
  assert.equal((await sandboxesOf(made.id)).length, 1);
  const [entry, more] = await feedOf(made.id, 'project_deleted');
  assert.deepEqual(
    [entry?.actor_kind, entry?.actor_user_id, entry?.details],
    ['session', admin.userId, { name: 'Short-lived' }],
  );
  assert.equal(more, undefined);
});

test('exactly one of many concurrent deletes succeeds; the others are 404', async () => {
  const { id } = await make();
  const answers = await Promise.all(Array.from({ length: 8 }, () => remove(id)));
  assert.equal(answers.filter(({ status }) => status === 200).length, 1);
  assert.equal(answers.filter(({ body }) => body.error?.code === 'project_not_found').length, 7);
  assert.equal((await feedOf(id, 'project_deleted')).length, 1);
});

test('an update that waits for a delete is 404 and changes nothing', async () => {
  const { id } = await make({ name: 'before' });
  const [deleting, changing] = await api.db.transaction().execute(async (trx) => {
    await sql`lock table activity in share row exclusive mode`.execute(trx);
    const first = remove(id);
    await waiters(1);
    const second = patch(id, { name: 'after', repoCredentials: { token: 'late' } });
    await waiters(2);
    return [[first], [second]];
  });
  assert.equal((await deleting?.[0])?.status, 200);
  assert.equal((await changing?.[0])?.body.error.code, 'project_not_found');
  const row = await api.db.selectFrom('project').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
  assert.deepEqual([row.name, row.repo_credentials_sealed], ['before', null]);
});

test('a delete during a create waits for it and is 409', async () => {
  const { id } = await make();
  const [creating, deleting] = await api.db.transaction().execute(async (trx) => {
    // The create has its project and waits for its host.
    await trx.selectFrom('host').select('id').forUpdate().execute();
    const first = createIn(id);
    await waiters(1);
    const second = remove(id);
    await waiters(2);
    return [[first], [second]];
  });
  assert.equal((await creating?.[0])?.status, 201);
  const refused = await deleting?.[0];
  assert.deepEqual([refused?.status, refused?.body.error.code], [409, 'project_has_sandboxes']);
  assert.match(refused?.body.error.message, /^the project still has 1 sandbox; destroy it first/);
  assert.equal((await get(id)).status, 200);
});

test('creates during a delete wait for it and are 400 unknown_project; replays still succeed', async () => {
  const { id } = await make();
  const earlier = await createIn(id, 'made before the delete');
  await api.db
    .updateTable('sandbox')
    .set({ status: 'deleted', deleted_at: new Date() })
    .where('project_id', '=', id)
    .execute();
  const [deleting, creating] = await api.db.transaction().execute(async (trx) => {
    // The delete has updated its project and waits to write the feed row.
    await sql`lock table activity in share row exclusive mode`.execute(trx);
    const first = remove(id);
    await waiters(1);
    const others = [createIn(id), createIn(id, 'made too late')];
    await waiters(3);
    assert.equal((await createIn(id, 'made before the delete')).body.sandbox.id, earlier.body.sandbox.id);
    return [[first], others];
  });
  assert.equal((await deleting?.[0])?.status, 200);
  for (const answer of await Promise.all(creating ?? [])) assert.equal(answer.body.error.code, 'unknown_project');
  assert.equal((await sandboxesOf(id)).length, 1);

  const replayed = await createIn(id, 'made before the delete');
  assert.deepEqual([replayed.status, replayed.headers.get('idempotent-replayed')], [201, 'true']);
  assert.deepEqual([replayed.body.sandbox.id, replayed.body.sandbox.status], [earlier.body.sandbox.id, 'deleted']);
  // A refused create leaves no key: it is refused again, not replayed.
  assert.equal((await createIn(id, 'made too late')).body.error.code, 'unknown_project');
});

test('of concurrent creates and a delete of their project either the creates or the delete succeed', async () => {
  for (let round = 0; round < 15; round += 1) {
    const { id } = await make();
    const key = `round ${round}`;
    const calls = [createIn(id), createIn(id, key), createIn(id, key), createIn(id)];
    const [deleted, ...created] = await Promise.all(
      round % 2 === 0 ? [remove(id), ...calls] : [...calls, remove(id)].toReversed(),
    );
    const rows = await sandboxesOf(id);
    if (deleted?.status === 200) {
      assert.deepEqual(
        created.map(({ body }) => body.error?.code),
        Array.from({ length: 4 }, () => 'unknown_project'),
      );
      assert.equal(rows.length, 0);
      assert.equal((await get(id)).status, 404);
    } else {
      assert.equal(deleted?.body.error.code, 'project_has_sandboxes');
      assert.deepEqual(
        created.map(({ status }) => status),
        [201, 201, 201, 201],
      );
      assert.equal(rows.length, 3);
      assert.equal((await get(id)).status, 200);
    }
  }
});
