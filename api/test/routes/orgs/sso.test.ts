// Orgs that require single sign-on: who is refused, what goes on, and who can switch it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Method } from '@berth/contract/route/route.ts';
import { ROUTES } from '@berth/contract/routes.ts';
import { sql } from 'kysely';
import { switchSsoOff } from '../../../src/services/orgs/sso.ts';
import { insertAgentSession } from '../../../src/store/agents/sessions.ts';
import { insertMembership } from '../../../src/store/people/identity.ts';
import { grantPreview, readTeamLink } from '../../../src/services/previews/sign-in.ts';
import { signInAs, startApi, type Answer, type TestApi } from '../../world/api.ts';
import { makeDomainRow, makePerson, type Person } from '../../world/people-rows.ts';
import { cookieOf, grantedLink, requestAccess } from '../../services/previews/links.ts';
import { untilTrue } from '../../../../os/test/until.ts';
import { RecordingWebSocket, requestWebSocket } from '../../world/websocket-client.ts';
import { filledPath, prepareRequest, callOptionsOf } from '../../sweeps/route-requests.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

interface Org {
  orgId: string;
  projectId: string;
  userId: string;
  /** Key of the owner. */
  token: string;
  /** Its proven domain. */
  domain: string;
}

/** An org with a proven domain; `required`: with the requirement. */
async function newOrg({ required }: { required: boolean }): Promise<Org> {
  const org = await api.makeOrg();
  const { domain } = await makeDomainRow(api.db, { orgId: org.orgId, state: 'proven' });
  if (required) await api.db.updateTable('org').set({ sso_required: true }).where('id', '=', org.orgId).execute();
  return { ...org, domain };
}
/** A member, whose address is in the org's domain unless `email` names another. */
async function member(org: Org, role: 'owner' | 'admin' | 'viewer' = 'owner', email?: string): Promise<Person> {
  const { userId } = await makePerson(api.db, { [org.orgId]: role });
  const address = email ?? `${userId}@${org.domain}`;
  await api.db.updateTable('user').set({ email: address }).where('id', '=', userId).execute();
  return { userId, email: address };
}
const passwordSignIn = ({ userId }: { userId: string }) => signInAs(api.db, userId);
async function ssoSignIn({ userId }: { userId: string }): Promise<{ loginId: string; token: string }> {
  const login = await signInAs(api.db, userId);
  await api.db.updateTable('session').set({ viaSso: true }).where('id', '=', login.loginId).execute();
  return login;
}
const projects = ({ orgId }: Org, token: string): Promise<Answer> =>
  api.call('GET', `/v1/orgs/${orgId}/projects`, { token });
const requireSso = ({ orgId }: Org, token: string, required = true): Promise<Answer> =>
  api.call('PATCH', `/v1/orgs/${orgId}/sso`, { token, body: { required } });
const codeOf = ({ status, body }: Answer): unknown => [status, body.error?.code];
const REFUSED = [403, 'sso_required'];

test('a member in the domain needs a sign-in by SSO; the refusal says how', async () => {
  const org = await newOrg({ required: true });
  const person = await member(org);
  const refused = await projects(org, (await passwordSignIn(person)).token);
  assert.deepEqual(codeOf(refused), REFUSED);
  assert.equal(
    refused.body.error.message,
    `this org requires single sign-on for addresses of ${org.domain}: sign in at http://berth.example.test/sign-in ` +
      'with the single sign-on button; in a program, sign in again and approve it in that browser',
  );
  assert.equal((await projects(org, (await ssoSignIn(person)).token)).status, 200);
});

test('members with other addresses, other orgs and the account itself are not affected', async () => {
  const org = await newOrg({ required: true });
  const outside = await member(org, 'admin', `someone@sub.${org.domain}`);
  assert.equal((await projects(org, (await passwordSignIn(outside)).token)).status, 200);
  const person = await member(org);
  const other = await newOrg({ required: false });
  await insertMembership(api.db, { orgId: other.orgId, userId: person.userId, role: 'viewer' });
  const { token } = await passwordSignIn(person);
  assert.equal((await projects(other, token)).status, 200);
  for (const path of ['/v1/me', '/v1/me/orgs', '/v1/me/sign-ins', '/v1/me/agent-tokens'])
    assert.equal((await api.call('GET', path, { token })).status, 200, path);
});

test("an org's claimed domains, and domains of other orgs, affect none of its members", async () => {
  const org = await newOrg({ required: true });
  const { domain } = await makeDomainRow(api.db, { orgId: org.orgId, state: 'claimed' });
  const foreign = await newOrg({ required: true });
  for (const email of [`a@${domain}`, `b@${foreign.domain}`]) {
    const person = await member(org, 'viewer', email);
    assert.equal((await projects(org, (await passwordSignIn(person)).token)).status, 200, email);
  }
});

test('every route on the org and its sandboxes refuses; strangers learn nothing of the requirement', async () => {
  const org = await newOrg({ required: true });
  const caller = await member(org);
  const { token } = await passwordSignIn(caller);
  const stranger = await passwordSignIn(await makePerson(api.db));
  const inOrg = ROUTES.filter(({ path, auth }) => /\{(orgId|sandboxId)\}/.test(path) && auth.includes('session'));
  assert.ok(inOrg.length > 30);
  for (const route of inOrg) {
    const prepared = await prepareRequest(route, { api, org, caller });
    await api.db.updateTable('org').set({ sso_required: true }).where('id', '=', org.orgId).execute();
    const path = filledPath(route, prepared.params);
    const options = callOptionsOf(prepared);
    assert.deepEqual(codeOf(await api.call(route.method, path, { ...options, token })), REFUSED, route.name);
    const unknown = await api.call(route.method, path, { ...options, token: stranger.token });
    assert.deepEqual(codeOf(unknown), [403, 'org_access_denied'], route.name);
  }
});

test('an agent token has the origin of the sign-in that created it, also in orgs joined later', async () => {
  const person = await makePerson(api.db);
  const create = async ({ token }: { token: string }): Promise<string> => {
    const body = { name: 't', canApprove: true, canWake: true };
    const made = await api.call('POST', '/v1/me/agent-tokens', { token, body });
    return api.secret(made.body.token);
  };
  const [byPassword, bySso] = [await create(await passwordSignIn(person)), await create(await ssoSignIn(person))];
  const org = await newOrg({ required: true });
  await insertMembership(api.db, { orgId: org.orgId, userId: person.userId, role: 'owner' });
  await api.db
    .updateTable('user')
    .set({ email: `${person.userId}@${org.domain}` })
    .where('id', '=', person.userId)
    .execute();
  const sandbox = await api.makeSandbox('stopped', { org_id: org.orgId, project_id: org.projectId });
  const session = await insertAgentSession(api.db, sandbox, { kind: 'session', id: 'ses_1', userId: org.userId });
  const { id } = sandbox;
  const requests: [Method, string, object?][] = [
    ['POST', `/v1/sandboxes/${id}/agent-sessions`],
    ['GET', `/v1/agent-sessions?orgId=${org.orgId}`],
    ['GET', `/v1/agent-sessions?sandboxId=${id}`],
    ['GET', `/v1/agent-sessions/${session.id}`],
    ['POST', `/v1/agent-sessions/${session.id}/answer`, { requestId: 'r', decision: 'accept' }],
    ['POST', `/v1/sandboxes/${id}/wake`],
  ];
  for (const [method, path, body] of requests) {
    const call = (token: string): Promise<Answer> =>
      api.call(method, path, { token, body, headers: { prefer: 'respond-async' } });
    assert.deepEqual(codeOf(await call(byPassword)), REFUSED, path);
    assert.notEqual((await call(bySso)).status, 403, path);
  }
  const listed = async (token: string): Promise<string[]> =>
    (await api.call('GET', '/v1/agent-sessions', { token })).body.sessions.map((one: { id: string }) => one.id);
  assert.deepEqual([await listed(byPassword), await listed(bySso)], [[], [session.id]]);
  const refused = await api.call('GET', `/v1/agent-sessions?orgId=${org.orgId}`, { token: byPassword });
  assert.match(refused.body.error.message, /this personal agent token was created without: create another/);
});

test('API keys are not affected, and show their origin; a sign-in without SSO creates no agent token', async () => {
  const org = await newOrg({ required: false });
  const person = await member(org);
  const make = async ({ token }: { token: string }): Promise<{ apiKey: { viaSso: boolean }; token: string }> =>
    (await api.call('POST', `/v1/orgs/${org.orgId}/api-keys`, { token, body: { name: 'k' } })).body;
  const keys = [await make(await passwordSignIn(person)), await make(await ssoSignIn(person))];
  await api.db.updateTable('org').set({ sso_required: true }).where('id', '=', org.orgId).execute();
  for (const { token } of keys) assert.equal((await projects(org, api.secret(token))).status, 200);
  assert.deepEqual(
    keys.map(({ apiKey }) => apiKey.viaSso),
    [false, true],
  );
  const { token } = await ssoSignIn(person);
  const { apiKeys } = (await api.call('GET', `/v1/orgs/${org.orgId}/api-keys`, { token })).body;
  const origins = apiKeys.map(({ viaSso }: { viaSso: boolean }) => viaSso);
  assert.deepEqual(origins, [true, false, false], "the operator's key was created without a sign-in");
  const create = ({ token }: { token: string }): Promise<Answer> =>
    api.call('POST', '/v1/me/agent-tokens', { token, body: { name: 't' } });
  assert.deepEqual(codeOf(await create(await passwordSignIn(person))), REFUSED);
  assert.equal((await create(await ssoSignIn(person))).status, 201);
  const outside = await member(org, 'viewer', `o@outside.${org.domain}`);
  assert.equal((await create(await passwordSignIn(outside))).status, 201);
});

test('only an owner signed in by SSO switches it on, with a proven domain; off needs no SSO of outsiders', async () => {
  const org = await newOrg({ required: false });
  const owner = await member(org);
  const outside = await member(org, 'owner', `o@outside.${org.domain}`);
  const admin = await member(org, 'admin');
  assert.deepEqual(codeOf(await requireSso(org, (await ssoSignIn(admin)).token)), [403, 'permission_denied']);
  for (const person of [owner, outside])
    assert.deepEqual(codeOf(await requireSso(org, (await passwordSignIn(person)).token)), REFUSED);
  const { token } = await ssoSignIn(owner);
  const bare = await api.makeOrg();
  await insertMembership(api.db, { orgId: bare.orgId, userId: owner.userId, role: 'owner' });
  await makeDomainRow(api.db, { orgId: bare.orgId, state: 'claimed' });
  assert.deepEqual(codeOf(await requireSso({ ...org, ...bare }, token)), [409, 'domain_needed']);
  const on = await requireSso(org, token);
  assert.deepEqual([on.status, on.body.sso.required], [200, true]);
  assert.deepEqual(codeOf(await requireSso(org, (await passwordSignIn(owner)).token, false)), REFUSED);
  assert.equal((await requireSso(org, (await passwordSignIn(outside)).token, false)).status, 200);
});

test('the requirement is switched only by a recent sign-in', async () => {
  const org = await newOrg({ required: false });
  const { loginId, token } = await ssoSignIn(await member(org));
  const age = async (interval: string): Promise<void> =>
    void (await sql`
      update "session" set "authenticatedAt" = now() - ${interval}::interval where id = ${loginId}`.execute(api.db));
  for (const required of [true, false]) {
    await age('1 hour');
    assert.deepEqual(codeOf(await requireSso(org, token, required)), [403, 'reauthentication_required']);
    await age('0 seconds');
    assert.equal((await requireSso(org, token, required)).status, 200);
  }
});

test('while SSO is required the last proven domain stays, and a further one is proven by SSO only', async () => {
  const org = await newOrg({ required: true });
  const outside = await member(org, 'owner', `o@outside.${org.domain}`);
  const { token } = await passwordSignIn(outside);
  const first = (await api.call('GET', `/v1/orgs/${org.orgId}/sso`, { token })).body.sso.domains[0].id;
  const remove = (id: string): Promise<Answer> => api.call('DELETE', `/v1/orgs/${org.orgId}/domains/${id}`, { token });
  assert.deepEqual(codeOf(await remove(first)), [409, 'domain_needed']);
  const claim = await makeDomainRow(api.db, { orgId: org.orgId, state: 'claimed', domain: `outside.${org.domain}` });
  api.txtRecords.set(`_berth-challenge.${claim.domain}`, [claim.challenge]);
  const verify = (by: { token: string }): Promise<Answer> =>
    api.call('POST', `/v1/orgs/${org.orgId}/domains/${claim.id}/verify`, { token: by.token });
  assert.deepEqual(codeOf(await verify({ token })), REFUSED, 'it would lock the caller out');
  const sso = await ssoSignIn(outside);
  assert.equal((await verify(sso)).status, 200);
  assert.deepEqual(codeOf(await remove(first)), REFUSED);
  const removed = await api.call('DELETE', `/v1/orgs/${org.orgId}/domains/${first}`, { token: sso.token });
  assert.equal(removed.status, 200, 'another proven domain is left');
});

test("the operator's command ends the requirement, and records it", async () => {
  const org = await newOrg({ required: true });
  const { token } = await passwordSignIn(await member(org));
  assert.deepEqual(codeOf(await projects(org, token)), REFUSED);
  assert.deepEqual(await switchSsoOff(api.db, org.orgId), { orgId: org.orgId, before: true });
  assert.equal((await projects(org, token)).status, 200);
  assert.deepEqual(await switchSsoOff(api.db, org.orgId), { orgId: org.orgId, before: false });
  const { activity } = (await api.call('GET', `/v1/orgs/${org.orgId}/activity`, { token })).body;
  const changes = activity.filter(({ kind }: { kind: string }) => kind === 'sso_changed');
  assert.deepEqual(
    changes.map(({ details, actor }: { details: unknown; actor: { kind: string } }) => [details, actor.kind]),
    [[{ required: false }, 'system']],
  );
  await assert.rejects(switchSsoOff(api.db, 'org_none'), /there is no org org_none/);
});

test('a preview of a team link opens for a sign-in by SSO only, and ends when the org requires it', async () => {
  const org = await newOrg({ required: false });
  const person = await member(org);
  const { id } = await api.makeSandbox('ready', { org_id: org.orgId, project_id: org.projectId });
  const made = await api.call('POST', `/v1/sandboxes/${id}/previews`, { token: org.token, body: { port: 3_000 } });
  const link = {
    id: null,
    sandboxId: id,
    port: 3_000,
    token: api.secret(new URL(made.body.preview.url).searchParams.get('token') ?? ''),
    expiresAt: made.body.preview.expiresAt,
  };
  const { loginId } = await passwordSignIn(person);
  const visitor = { loginId, userId: person.userId };
  const cookie = cookieOf(api, await requestAccess(api.previewAccess, await grantedLink(api, link, visitor)));
  assert.equal((await requestAccess(api.previewAccess, link, { token: null, cookie })).refusal, undefined);
  await api.db.updateTable('org').set({ sso_required: true }).where('id', '=', org.orgId).execute();
  const team = readTeamLink(api.context, { link: link.token, sandbox: id, port: '3000' });
  assert.ok(team !== null);
  assert.equal(await grantPreview(api.context, visitor, team, '/'), 'sso_required');
  // Decisions are cached for a second.
  await untilTrue('the preview is refused', async () => {
    const { refusal } = await requestAccess(api.previewAccess, link, { token: null, cookie });
    return refusal !== undefined;
  });
  const bySso = { loginId: (await ssoSignIn(person)).loginId, userId: person.userId };
  const granted = await requestAccess(api.previewAccess, await grantedLink(api, link, bySso));
  assert.equal(granted.refusal, undefined);
});

test('an open tunnel closes when the org requires SSO', async (context) => {
  const org = await newOrg({ required: false });
  const { token } = await passwordSignIn(await member(org));
  const { id } = await api.makeSandbox('ready', { org_id: org.orgId, project_id: org.projectId });
  api.front.stream = () => (stream) => void stream.pipe(stream);
  const answer = await requestWebSocket(`${api.url}/v1/sandboxes/${id}/tunnel?port=3000`, {
    authorization: `Bearer ${api.secret(token)}`,
  });
  assert.ok('socket' in answer, JSON.stringify(answer));
  const heard = new RecordingWebSocket(answer.socket);
  context.after(() => heard.socket.terminate());
  let closed: unknown;
  void heard.closed.then((how) => (closed = how));
  await api.db.updateTable('org').set({ sso_required: true }).where('id', '=', org.orgId).execute();
  await untilTrue('the tunnel is closed', () => closed !== undefined);
  assert.deepEqual(closed, { code: 4403, reason: 'sso_required' });
});

test('ten orgs that switch at once affect only their own members', async () => {
  const orgs = await Promise.all(Array.from({ length: 10 }, (_, index) => newOrg({ required: index % 2 === 0 })));
  const people = await Promise.all(orgs.map((org) => member(org)));
  const answers = await Promise.all(
    orgs.map(async (org, index) => {
      const { token } = await ssoSignIn(people[index] as Person);
      return await requireSso(org, token, index % 2 === 1);
    }),
  );
  assert.ok(answers.every(({ status }) => status === 200));
  for (const [index, org] of orgs.entries()) {
    const { token } = await passwordSignIn(people[index] as Person);
    const expected = index % 2 === 1 ? 403 : 200;
    assert.equal((await projects(org, token)).status, expected);
  }
});
