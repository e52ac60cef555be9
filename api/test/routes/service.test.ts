// The service's description, and the names of orgs.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { signInAs, startApi, type Answer, type TestApi } from '../world/api.ts';

let api: TestApi;
let session: string;
before(async () => {
  api = await startApi({ durable: false });
  session = (await signInAs(api.db, api.userId)).token;
});
after(() => api.close());

const rename = (path: string, body: object): Promise<Answer> => api.call('PATCH', path, { body, token: session });

test('the description has the version, the addresses and every agent', async () => {
  const { status, body } = await api.call('GET', '/v1/service');
  assert.equal(status, 200);
  const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  assert.equal(body.version, version);
  assert.deepEqual(body.agents, [
    { id: 'agent_one', label: 'Codex' },
    { id: 'agent_two', label: 'Claude Code' },
  ]);
  for (const url of [body.publicUrl, body.previewUrl]) assert.equal(new URL(url).origin, url);
  assert.deepEqual(Object.keys(body.features).toSorted(), ['console', 'modelEndpoints', 'openSignUp', 'payments']);
  assert.equal((await api.call('GET', '/v1/service', { token: null })).status, 401);
});

test('a name that is missing, empty or too long, or another field, is refused', async () => {
  for (const wrong of [{}, { name: '' }, { name: 'x'.repeat(101) }, { name: 'a', role: 'owner' }])
    assert.equal((await rename(`/v1/orgs/${api.orgId}`, wrong)).status, 400);
});

test('an owner renames the org, and the feed has both names once', async () => {
  const path = `/v1/orgs/${api.orgId}`;
  const [before] = (await api.call('GET', '/v1/me/orgs', { token: session })).body.orgs;
  for (let repeat = 0; repeat < 2; repeat += 1) {
    const { status, body } = await rename(path, { name: 'Renamed' });
    assert.deepEqual([status, body.org], [200, { ...before, name: 'Renamed' }]);
  }
  const { activity } = (await api.call('GET', `${path}/activity?kind=org_updated`)).body;
  assert.deepEqual(
    activity.map(({ details }: { details: unknown }) => details),
    [{ changes: { name: { from: before.name, to: 'Renamed' } } }],
  );
});

test('a person changes its own name, and each of its orgs has both names once', async () => {
  const before = (await api.call('GET', '/v1/me', { token: session })).body;
  for (let repeat = 0; repeat < 2; repeat += 1) {
    const { status, body } = await rename('/v1/me', { displayName: 'Ada King' });
    assert.deepEqual([status, body], [200, { ...before, displayName: 'Ada King' }]);
  }
  const { activity } = (await api.call('GET', `/v1/orgs/${api.orgId}/activity?kind=member_renamed`)).body;
  assert.deepEqual(
    activity.map(({ subject, details }: { subject: unknown; details: unknown }) => [subject, details]),
    [[{ kind: 'user', id: before.id }, { changes: { name: { from: before.displayName, to: 'Ada King' } } }]],
  );
  for (const wrong of [{}, { displayName: '' }, { displayName: 'x'.repeat(101) }, { email: 'a@example.test' }])
    assert.equal((await rename('/v1/me', wrong)).status, 400);
  const { status, body } = await api.call('PATCH', '/v1/me', { body: { displayName: 'x' } });
  assert.deepEqual([status, body.error.code], [403, 'auth_kind_not_allowed']);
});

test('a key renames nothing', async () => {
  const { status, body } = await api.call('PATCH', `/v1/orgs/${api.orgId}`, { body: { name: 'x' } });
  assert.deepEqual([status, body.error.code], [403, 'auth_kind_not_allowed']);
});
