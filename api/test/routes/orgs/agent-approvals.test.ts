// Permission to let the agents of a project act without approval.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

const path = (id = ''): string => `/v1/orgs/${api.orgId}/projects${id === '' ? '' : `/${id}`}`;
const create = (token: string, agentApprovals?: string): Promise<Answer> =>
  api.call('POST', path(), { token, body: { agentApprovals } });
const update = (token: string, id: string, body: object): Promise<Answer> =>
  api.call('PATCH', path(id), { token, body });
const codeOf = ({ status, body }: Answer): unknown => (status < 300 ? status : [status, body.error.code]);

test('only owners, admins and their keys set agentApprovals to never; members set it back', async () => {
  const tokens = {
    owner: (await api.makeSession({ role: 'owner' })).token,
    admin: (await api.makeSession({ role: 'admin' })).token,
    member: (await api.makeSession({ role: 'member' })).token,
    keyOfOwner: await api.makeKey({}),
    keyOfMember: await api.makeKey({ role: 'member' }),
    scopedKey: await api.makeKey({ scopes: ['project.create', 'project.update'] }),
    keyWithScope: await api.makeKey({ scopes: ['project.create', 'project.update', 'agent_approvals.disable'] }),
  };
  const refused = [403, 'permission_denied'];
  const may = { owner: true, admin: true, member: false, keyOfOwner: true, keyOfMember: false, scopedKey: false };
  for (const [name, allowed] of Object.entries({ ...may, keyWithScope: true })) {
    const token = tokens[name as keyof typeof tokens];
    assert.deepEqual(codeOf(await create(token, 'never')), allowed ? 201 : refused, name);
    const { id } = (await create(token, 'ask')).body.project;
    const changed = await update(token, id, { agentApprovals: 'never', name: 'other' });
    assert.deepEqual(codeOf(changed), allowed ? 200 : refused, name);
    const { agentApprovals, name: kept } = (await update(tokens.owner, id, {})).body.project;
    assert.deepEqual([agentApprovals, kept === 'other'], [allowed ? 'never' : 'ask', allowed], name);

    await update(tokens.owner, id, { agentApprovals: 'never' });
    assert.equal((await update(token, id, { agentApprovals: 'never', name: 'unchanged' })).status, 200, name);
    assert.equal((await update(token, id, { agentApprovals: 'ask' })).body.project.agentApprovals, 'ask', name);
  }
});
