// The statement that finds a caller and its path's sandbox: one per call, for every token kind, and
// during migrations.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { AuthKind } from '@berth/contract/route/route.ts';
import { sql } from 'kysely';
import { newToken, tokenSha256 } from '../../../src/services/access/bearer-token.ts';
import { startApi, type TestApi } from '../../world/api.ts';
import { makeAgentTokenRow } from '../../world/people-rows.ts';
import { StatementRecorder } from '../../world/statements.ts';

let api: TestApi;
const statements = new StatementRecorder();
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

test('a GET of a sandbox is one statement for every kind of token', async () => {
  const { id } = await api.makeSandbox('ready');
  const session = await api.makeSession({ role: 'viewer' });
  const key = await api.makeKey({});
  for (const token of [key, session.token]) {
    // Records the first use of the key beforehand.
    assert.equal((await api.call('GET', `/v1/sandboxes/${id}`, { token })).status, 200);
    const { result, statements: ran } = await statements.during(() =>
      api.call('GET', `/v1/sandboxes/${id}`, { token }),
    );
    assert.equal(result.body.sandbox.id, id);
    assert.equal(ran.length, 1, ran.join('\n'));
  }
});

test("the credential and sandbox found equal their rows, with the role in the sandbox's org", async () => {
  const { callers } = api.context;
  const { id } = await api.makeSandbox('ready', { metadata: '{"a":1}', end_user_id: 'x' });
  const row = await api.db.selectFrom('sandbox').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
  const viewer = await api.makeSession({ role: 'viewer' });
  const agent = await makeAgentTokenRow(api.db, { userId: viewer.userId });
  const key = await api.makeKey({ role: 'operator', scopes: ['sandbox.read'] });
  const other = await api.makeOrg();

  const byKey = await callers.findKey(tokenSha256(key), id);
  const { host_url, ...found } = byKey.sandbox ?? assert.fail();
  assert.deepEqual(found, row);
  assert.equal(host_url, api.front.url);
  assert.deepEqual(
    [byKey.credential?.scopes, byKey.credential?.role, byKey.credential?.org_id],
    [['sandbox.read'], 'operator', api.orgId],
  );
  assert.equal((await callers.findSession(tokenSha256(viewer.token), id)).roleInOrgOfSandbox, 'viewer');
  assert.equal((await callers.findSession(tokenSha256(viewer.token), id)).ssoInOrgOfSandbox, null);
  const byAgent = await callers.findAgentToken(tokenSha256(agent.token), id);
  assert.deepEqual(
    [byAgent.credential?.id, byAgent.credential?.expired, byAgent.roleInOrgOfSandbox],
    [agent.id, false, 'viewer'],
  );
  const foreign = await callers.findKey(tokenSha256(other.token), id);
  assert.deepEqual([foreign.credential?.role, foreign.sandbox?.id, foreign.roleInOrgOfSandbox], ['owner', id, null]);
});

test('missing credentials, sandboxes and hosts are not found', async () => {
  const { callers } = api.context;
  const { id } = await api.makeSandbox('provisioning', { host_id: null });
  const nobody = await callers.findKey(tokenSha256(newToken('api_key')), id);
  assert.deepEqual(nobody, {
    credential: undefined,
    sandbox: undefined,
    session: undefined,
    roleInOrgOfSandbox: null,
    ssoInOrgOfSandbox: null,
  });
  const nothing = await callers.findKey(tokenSha256(api.token), 'sbx_aaaaaaaaaaaaaaaaaaaaaaaa');
  assert.deepEqual(
    [nothing.credential?.org_id, nothing.sandbox, nothing.roleInOrgOfSandbox],
    [api.orgId, undefined, null],
  );
  assert.equal((await callers.findKey(tokenSha256(api.token), id)).sandbox?.host_url, null);
  assert.equal((await callers.findKey(tokenSha256(api.token), null)).sandbox, undefined);
  // A token of one kind is invalid as another.
  assert.equal((await callers.findSession(tokenSha256(api.token), id)).credential, undefined);
});

test("calls continue while a newer replica's migration changes the columns they read", async () => {
  const { id } = await api.makeSandbox('ready');
  const session = await api.makeSession({ role: 'owner' });
  const tokens: { readonly [kind in AuthKind]?: string } = { api_key: api.token, session: session.token };
  const callAll = async (): Promise<void> => {
    // Enough concurrent calls that several connections prepare the statement.
    const answers = await Promise.all(
      Object.values(tokens).flatMap((token) =>
        Array.from({ length: 12 }, () => api.call('GET', `/v1/sandboxes/${id}`, { token })),
      ),
    );
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
  };
  await callAll();
  for (const change of [
    sql`alter table sandbox add column added text not null default 'new'`,
    sql`alter table sandbox alter column name type varchar(1000)`,
    sql`alter table sandbox drop column added`,
    sql`alter table api_key alter column created_by type varchar(100)`,
  ]) {
    await change.execute(api.db);
    await callAll();
  }
});
