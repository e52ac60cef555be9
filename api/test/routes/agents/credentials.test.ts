// Model credentials of projects: stored sealed, never returned.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { MODEL_KEY_CHARACTERS } from '@berth/contract/route/limits.ts';
import { openText } from '../../../src/services/context/sealed.ts';
import { SEALED_COLUMNS } from '../../../src/store/secrets/sealed-values.ts';
import { startApi, type Answer, type TestApi, type TestSession } from '../../world/api.ts';

const KEY = 'sk-WatchedForEverywhere0123456789';

let api: TestApi;
let admin: TestSession;
before(async () => {
  api = await startApi({ durable: false });
  admin = await api.makeSession({ role: 'admin' });
});
after(() => api.close());

const makeProject = async (): Promise<string> =>
  (await api.call('POST', `/v1/orgs/${api.orgId}/projects`, { body: {} })).body.project.id;
const call = (method: 'GET' | 'PUT' | 'DELETE', projectId: string, agent: string, body?: object): Promise<Answer> =>
  api.call(method, `/v1/orgs/${api.orgId}/projects/${projectId}/agent-credentials/${agent}`, {
    token: admin.token,
    ...(body === undefined ? {} : { body }),
  });
const rowOf = (projectId: string) =>
  api.db.selectFrom('agent_credential').selectAll().where('project_id', '=', projectId).executeTakeFirst();
const eventsOf = (projectId: string) =>
  api.db
    .selectFrom('activity')
    .select(['kind', 'details'])
    .where('project_id', '=', projectId)
    .where('kind', 'like', 'agent_credentials%')
    .orderBy('seq')
    .execute();

test('a stored key opens unchanged, is never returned, and gets a new revision when replaced', async () => {
  const id = await makeProject();
  const none = { agent: 'agent_one', stored: false, endpoint: null, updatedAt: null };
  assert.deepEqual((await call('GET', id, 'agent_one')).body.agentCredentials, none);

  const put = await call('PUT', id, 'agent_one', { apiKey: KEY });
  assert.equal(put.status, 200, JSON.stringify(put.body));
  const { updatedAt, ...shown } = put.body.agentCredentials;
  assert.deepEqual(shown, { agent: 'agent_one', stored: true, endpoint: 'https://api.openai.test' });
  assert.deepEqual((await call('GET', id, 'agent_one')).body, put.body);
  assert.deepEqual((await call('GET', id, 'agent_two')).body.agentCredentials.stored, false);
  const row = await rowOf(id);
  assert.ok(row);
  assert.equal(row.updated_at.toISOString(), updatedAt);
  const keys = api.context.secretKey.keysFor('agent-credentials');
  assert.equal(openText(keys, `${id}:agent_one`, row.key_sealed), KEY);
  assert.throws(() => openText(keys, `${id}:agent_two`, row.key_sealed));
  assert.ok(!row.key_sealed.includes(KEY));

  await call('PUT', id, 'agent_one', { apiKey: KEY });
  assert.notEqual((await rowOf(id))?.revision, row.revision);
  const removed = await call('DELETE', id, 'agent_one');
  assert.deepEqual(removed.body.agentCredentials, none);
  assert.equal((await call('DELETE', id, 'agent_one')).status, 200);
  assert.equal(await rowOf(id), undefined);

  const updated = {
    kind: 'agent_credentials_updated',
    details: { agent: 'agent_one', endpoint: 'https://api.openai.test' },
  };
  assert.deepEqual(await eventsOf(id), [
    updated,
    updated,
    { kind: 'agent_credentials_removed', details: { agent: 'agent_one' } },
  ]);
});

test('endpoints outside the list of the operator are refused', async () => {
  const id = await makeProject();
  const listed = await call('PUT', id, 'agent_one', { apiKey: KEY, endpoint: 'http://127.0.0.1:3001/proxy/' });
  assert.equal(listed.body.agentCredentials.endpoint, 'http://127.0.0.1:3001/proxy');
  for (const endpoint of ['http://169.254.169.254', 'https://api.anthropic.test', '']) {
    const refused = await call('PUT', id, 'agent_one', { apiKey: KEY, endpoint });
    assert.equal(refused.status, 400);
    assert.equal(
      refused.body.error.message,
      'body.endpoint must be one of https://api.openai.test, http://127.0.0.1:3001/proxy',
    );
  }
});

for (const apiKey of ['', 'with space', 'line\nbreak', 'snow☃', 'x'.repeat(MODEL_KEY_CHARACTERS + 1)]) {
  test(`a key of ${apiKey.length} characters that no header can hold is refused without repeating it`, async () => {
    const id = await makeProject();
    const refused = await call('PUT', id, 'agent_two', { apiKey });
    assert.equal(refused.status, 400);
    if (apiKey !== '') assert.ok(!JSON.stringify(refused.body).includes(apiKey));
    assert.equal(await rowOf(id), undefined);
  });
}

test('deleting a project deletes its keys', async () => {
  const id = await makeProject();
  await call('PUT', id, 'agent_two', { apiKey: KEY });
  const deleted = await api.call('DELETE', `/v1/orgs/${api.orgId}/projects/${id}`, { token: admin.token });
  assert.equal(deleted.status, 200, JSON.stringify(deleted.body));
  assert.equal(await rowOf(id), undefined);
});

test('a rotation of the secret key seals model keys again', () => {
  assert.ok(SEALED_COLUMNS.some(({ table, column }) => table === 'agent_credential' && column === 'key_sealed'));
});
