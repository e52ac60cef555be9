// Egress policies over HTTP, with the real durable work and a stand-in host.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { canonicalJson } from '../../../src/rules/canonical-json.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';
import { settled } from '../../world/settled.ts';
import { untilTrue } from '../../../../os/test/until.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: true });
});
after(() => api.close());
afterEach(() => api.host.calm());

const OPEN = { mode: 'open', names: [], ranges: [], ports: [] };
const NONE = { ...OPEN, mode: 'none' };

const create = async (body: object = {}): Promise<Answer['body']> => {
  const answer = await settled(api, () =>
    api.call('POST', `/v1/orgs/${api.orgId}/sandboxes`, {
      body: { agent: 'agent_one', projectId: api.projectId, ...body },
    }),
  );
  assert.equal(answer.body.sandbox?.status, 'ready', JSON.stringify(answer.body));
  return answer.body.sandbox;
};
const put = (id: string, body: object): Promise<Answer> => api.call('PUT', `/v1/sandboxes/${id}/egress`, { body });
const move = (id: string, verb: string): Promise<Answer> =>
  settled(api, () => api.call('POST', `/v1/sandboxes/${id}/${verb}`));
const awake = (id: string): Promise<void> =>
  untilTrue('the sandbox is awake', async () =>
    ['ready', 'running'].includes((await api.call('GET', `/v1/sandboxes/${id}`)).body.sandbox.status),
  );
const policyAtHost = (id: string): object | undefined => {
  const { revision: _, ...policy } = api.host.egress(id) ?? { revision: 0, ...OPEN };
  return policy;
};

test('a sandbox has the egress policy of its create, in its normal form, from the first start', async () => {
  const egress = { mode: 'allow', names: ['Registry.NPMJS.org.', '*.example.com'], ranges: ['44.1.2.3'], ports: [443] };
  const normal = { ...egress, names: ['registry.npmjs.org', '*.example.com'], ranges: ['44.1.2.3/32'] };
  const sandbox = await create({ egress });
  assert.deepEqual(sandbox.egress, normal);
  assert.deepEqual(policyAtHost(sandbox.id), normal);
  assert.deepEqual((await create()).egress, OPEN);
});

test("a sandbox without a policy gets its project's default; a change of the default leaves it", async () => {
  const path = `/v1/orgs/${api.orgId}/projects/${api.projectId}`;
  await api.call('PATCH', path, { body: { defaultEgress: { mode: 'none' } } });
  const { id, egress } = await create();
  assert.deepEqual([egress, policyAtHost(id)], [NONE, NONE]);
  assert.deepEqual((await create({ egress: { mode: 'open' } })).egress, OPEN);
  const cleared = await api.call('PATCH', path, { body: { defaultEgress: null } });
  assert.equal(cleared.body.project.defaultEgress, null);
  assert.deepEqual((await api.call('GET', `/v1/sandboxes/${id}`)).body.sandbox.egress, NONE);
});

test('a change is enforced before its response, noted once, and kept by sleep and wake', async () => {
  const { id } = await create();
  const answer = await put(id, { mode: 'none' });
  assert.deepEqual([answer.status, answer.body.enforced, answer.body.sandbox.egress], [200, true, NONE]);
  assert.deepEqual(policyAtHost(id), NONE);
  assert.equal((await put(id, { mode: 'none' })).body.enforced, true);
  const feed = await api.call('GET', `/v1/orgs/${api.orgId}/activity?sandboxId=${id}`);
  const noted = feed.body.activity.filter(({ kind }: { kind: string }) => kind === 'sandbox_egress_changed');
  assert.deepEqual(
    noted.map(({ details }: { details: object }) => details),
    [{ from: { mode: 'open' }, to: { mode: 'none' } }],
  );
  await move(id, 'sleep');
  const asleep = await put(id, { mode: 'allow', ranges: ['44.0.0.0/8'] });
  assert.equal(asleep.body.enforced, false);
  await move(id, 'wake');
  assert.deepEqual(policyAtHost(id), { ...OPEN, mode: 'allow', ranges: ['44.0.0.0/8'] });
});

test('a change that the host did not confirm is repeated until it does', async () => {
  const { id } = await create();
  api.host.refuseEgress = { code: 'internal', message: 'nft failed' };
  const answer = await put(id, { mode: 'none' });
  assert.deepEqual([answer.status, answer.body.enforced], [200, false]);
  assert.deepEqual(policyAtHost(id), OPEN);
  api.host.refuseEgress = null;
  await untilTrue('the host has the policy', () => api.host.egress(id)?.mode === 'none');
});

test('a change during a create or a wake is in force when the sandbox is awake', async () => {
  const called = (verb: string, id: string): boolean =>
    api.host.calls.some((call) => call.verb === verb && call.id === id);
  api.host.createMs = api.host.wakeMs = 60_000;
  const made = await api.call('POST', `/v1/orgs/${api.orgId}/sandboxes`, {
    body: { agent: 'agent_one', projectId: api.projectId },
    headers: { prefer: 'respond-async' },
  });
  const { id } = made.body.sandbox;
  await untilTrue('the host creates', () => called('PUT', id));
  assert.deepEqual([(await put(id, { mode: 'none' })).body.enforced, api.host.egress(id)], [false, undefined]);
  api.host.finish('PUT');
  await awake(id);
  assert.deepEqual(policyAtHost(id), NONE);

  await move(id, 'sleep');
  await api.call('POST', `/v1/sandboxes/${id}/wake`, { headers: { prefer: 'respond-async' } });
  await untilTrue('the host wakes', () => called('wake', id));
  const list = { mode: 'allow', ranges: ['44.0.0.0/8'] };
  assert.equal((await put(id, list)).body.enforced, false);
  api.host.finish('wake');
  await awake(id);
  assert.deepEqual(policyAtHost(id), { ...OPEN, ...list });
});

test('ten changes at once leave the policy of the row at the host', async () => {
  const { id } = await create();
  await Promise.all(
    Array.from({ length: 10 }, (_, index) => put(id, { mode: 'allow', ranges: [`44.${index}.0.0/16`] })),
  );
  const { egress } = (await api.call('GET', `/v1/sandboxes/${id}`)).body.sandbox;
  const wanted = canonicalJson(egress);
  await untilTrue('the host has the last policy', () => canonicalJson(policyAtHost(id)) === wanted);
});

for (const [title, egress, message] of [
  ['an unknown mode', { mode: 'closed' }, /egress\.mode must be one of "open", "none", "allow", not "closed"/],
  ['an empty list', { mode: 'allow' }, /must have names or ranges with mode allow; 0\.0\.0\.0\/0 is every public/],
  ['a list under none', { mode: 'none', names: ['a.b'] }, /must have no names, ranges or ports with mode none/],
  [
    'an address as a name',
    { mode: 'allow', names: ['1.2.3.4'] },
    /must be a DNS name such as example\.com.*as a range/,
  ],
  ['a URL as a name', { mode: 'allow', names: ['https://a.b/'] }, /must be a DNS name such as example\.com/],
  ['a name in Unicode', { mode: 'allow', names: ['bücher.example'] }, /in its xn-- form/],
  ['a wildcard inside', { mode: 'allow', names: ['a.*.com'] }, /or \*\.example\.com for every name below it/],
  ['an IPv6 range', { mode: 'allow', ranges: ['2001:db8::/32'] }, /must be an IPv4 range.*sandboxes have no IPv6/],
  ['address bits', { mode: 'allow', ranges: ['44.1.2.3/8'] }, /must have no address bits beyond its prefix/],
  ['port 0', { mode: 'allow', names: ['a.b'], ports: [0] }, /egress\.ports\.0 must be at least 1/],
  [
    '65 names',
    { mode: 'allow', names: Array.from({ length: 65 }, (_, n) => `a${n}.b`) },
    /^body\.egress\.names must have at most 64 entries, not 65$/,
  ],
  [
    'an unknown field',
    { mode: 'none', hosts: [] },
    /egress\.hosts: unknown field; allowed: mode, names, ranges, ports/,
  ],
] as const) {
  test(`an egress policy with ${title} is 400 and names the allowed values`, async () => {
    const answer = await api.call('POST', `/v1/orgs/${api.orgId}/sandboxes`, {
      body: { agent: 'agent_one', projectId: api.projectId, egress },
    });
    assert.deepEqual([answer.status, answer.body.error.code], [400, 'invalid_request']);
    assert.match(answer.body.error.message, message);
  });
}

test('the egress policy of a deleted sandbox cannot be changed', async () => {
  const { id } = await create();
  await move(id, 'destroy');
  const answer = await put(id, { mode: 'none' });
  assert.deepEqual([answer.status, answer.body.error.code], [409, 'sandbox_state_conflict']);
});
