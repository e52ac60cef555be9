// Repository of a create, from the request or the project's default: the sandbox's fields, and
// refusals.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

const project = async (fields: object): Promise<string> =>
  (await api.call('POST', `/v1/orgs/${api.orgId}/projects`, { body: fields })).body.project.id;
const create = (projectId: string, fields: object): Promise<Answer> =>
  api.call('POST', `/v1/orgs/${api.orgId}/sandboxes`, {
    body: { agent: 'agent_one', projectId, ...fields },
    headers: { prefer: 'respond-async' },
  });
const countSandboxes = async (): Promise<number> => (await api.db.selectFrom('sandbox').select('id').execute()).length;

const DEFAULTS = { defaultRepository: 'acme/web', defaultBranch: 'main', repoCredentials: { token: 't' } };

for (const [title, defaults, fields, expected] of [
  ['nothing, in a project without defaults', {}, {}, [null, null]],
  ["nothing: the project's defaults, both", DEFAULTS, {}, ['acme/web', 'main']],
  [
    "a repository of its own: its default branch, not the project's",
    DEFAULTS,
    { repository: 'acme/api' },
    ['acme/api', null],
  ],
  ['a repository and a branch', DEFAULTS, { repository: 'acme/api', branch: 'dev' }, ['acme/api', 'dev']],
  ["a branch: that of the project's repository", DEFAULTS, { branch: 'dev' }, ['acme/web', 'dev']],
  [
    "a branch that is null: the default branch of the project's repository",
    DEFAULTS,
    { branch: null },
    ['acme/web', null],
  ],
  ['a repository that is null: none, whatever the project says', DEFAULTS, { repository: null }, [null, null]],
  ['nothing, where the project has a branch and no repository', { defaultBranch: 'main' }, {}, [null, null]],
  [
    'a URL on an allowed host',
    {},
    { repository: 'https://other.example.test/a/b.git' },
    ['https://other.example.test/a/b.git', null],
  ],
  [
    'a URL on a host that is allowed by http',
    {},
    { repository: 'http://127.0.0.1:3000/a' },
    ['http://127.0.0.1:3000/a', null],
  ],
] as const) {
  test(`a create that requests ${title} has the expected repository and branch`, async () => {
    const answer = await create(await project(defaults), fields);
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
    const { sandbox } = answer.body;
    assert.deepEqual([sandbox.repository, sandbox.branch], expected);
    assert.deepEqual(sandbox.clone, expected[0] === null ? null : { status: 'pending', reason: null });
    const created = await api.db
      .selectFrom('activity')
      .select('details')
      .where('sandbox_id', '=', sandbox.id)
      .executeTakeFirstOrThrow();
    const { repository, branch } = created.details;
    assert.deepEqual([repository, branch], expected[0] === null ? [undefined, undefined] : expected);
  });
}

for (const [title, defaults, fields, message] of [
  [
    'a branch without a repository',
    {},
    { branch: 'main' },
    /^body\.branch requires a repository: set body\.repository, or the project's default/,
  ],
  [
    'a branch beside a repository that is null',
    DEFAULTS,
    { repository: null, branch: 'main' },
    /^body\.branch requires a repository/,
  ],
  [
    'a URL on a host that is not allowed',
    {},
    { repository: 'https://elsewhere.example.test/a/b' },
    /^body\.repository must have the form owner\/repo, or be a URL on https:\/\/other\.example\.test or http:\/\/127\.0\.0\.1:3000; to allow URLs on .*, the operator of this service adds .* to BERTH_GIT_ALLOW_URLS$/,
  ],
  [
    'a URL on an allowed host by http',
    {},
    { repository: 'http://other.example.test/a/b' },
    /^body\.repository must have the form owner\/repo, or/,
  ],
  [
    'a URL with a user name',
    {},
    { repository: 'https://user@other.example.test/a/b' },
    /^body\.repository must be the https URL of a repository, without user name, query, fragment or trailing slash$/,
  ],
  ['a file', {}, { repository: 'file:///etc' }, /^body\.repository must be the https URL/],
  [
    'a branch that git does not take',
    {},
    { repository: 'a/b', branch: 'a..b' },
    /^body\.branch must be a git branch name$/,
  ],
  [
    'a branch that is an option',
    {},
    { repository: 'a/b', branch: '--upload-pack=x' },
    /^body\.branch must be a git branch name$/,
  ],
  ['a repository that is true', {}, { repository: true }, /^body\.repository must be a string, not true$/],
] as const) {
  test(`a create with ${title} is 400 and leaves nothing behind`, async () => {
    const projectId = await project(defaults);
    const before = await countSandboxes();
    const answer = await create(projectId, fields);
    assert.equal(answer.status, 400);
    assert.equal(answer.body.error.code, 'invalid_request');
    assert.match(answer.body.error.message, message);
    assert.equal(await countSandboxes(), before);
  });
}

test('a default repository on a no longer allowed host refuses creates that use it, by name', async () => {
  const id = await project({});
  await api.db
    .updateTable('project')
    .set({ default_repository: 'https://gone.example.test/a/b' })
    .where('id', '=', id)
    .execute();
  const answer = await create(id, {});
  assert.equal(answer.status, 400);
  assert.match(answer.body.error.message, /^the project's defaultRepository must have the form owner\/repo/);
  assert.equal((await create(id, { repository: null })).status, 201);
  assert.equal((await create(id, { repository: 'acme/web' })).status, 201);
});

test('a repeated create is the same sandbox; with another repository it is a conflict', async () => {
  const id = await project(DEFAULTS);
  const send = (fields: object): Promise<Answer> =>
    api.call('POST', `/v1/orgs/${api.orgId}/sandboxes`, {
      body: { agent: 'agent_one', projectId: id, ...fields },
      headers: { prefer: 'respond-async', 'idempotency-key': 'clone-1' },
    });
  const first = await send({ repository: 'acme/api' });
  const again = await send({ repository: 'acme/api' });
  assert.deepEqual([again.status, again.body.sandbox.id], [201, first.body.sandbox.id]);
  for (const other of [{ repository: null }, {}, { repository: 'acme/api', branch: null }])
    assert.equal((await send(other)).body.error.code, 'idempotency_key_conflict');
});
