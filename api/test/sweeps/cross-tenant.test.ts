// Isolation of orgs: a response reveals that a foreign id exists (403 instead of 404) and nothing
// else, neither by its bytes nor by the SQL behind it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { agentTokenPermissions } from '@berth/contract/access/agent-tokens.ts';
import { errorEnvelope, ERRORS, type ErrorCode } from '@berth/contract/route/errors.ts';
import { ROLE_PERMISSIONS } from '@berth/contract/route/permissions.ts';
import { NAMED_IN_PATHS, type AuthKind, type Route } from '@berth/contract/route/route.ts';
import { ROUTES } from '@berth/contract/routes.ts';
import { sql } from 'kysely';
import { newId } from '../../src/store/database/ids.ts';
import { signInAs, startApi, type TestApi } from '../world/api.ts';
import { makeAgentTokenRow, makeKeyRow, makePerson } from '../world/people-rows.ts';
import { filledPath, prepareRequest } from './route-requests.ts';
import { StatementRecorder } from '../world/statements.ts';
import { unknownIds, makeTenant, type Tenant, type Resource } from './tenants.ts';

interface Requester {
  what: string;
  kind: AuthKind;
  token: string;
  /** Permissions in the caller's own org. */
  may: (permission: Route['permission']) => boolean;
}

const recorder = new StatementRecorder();
let api: TestApi;
let own: Tenant;
let foreign: Tenant;
/** Other orgs, filled differently from the foreign one. */
let foreignOrgs: Resource[];
let requesters: Requester[];
before(async () => {
  api = await startApi({ durable: false });
  own = await makeTenant(api, api.orgId);
  foreign = await makeTenant(api, (await api.makeOrg()).orgId);
  const bare = { what: 'an org without members, projects and a plan', id: (await api.makeOrg()).orgId };
  for (const table of ['membership', 'subscription', 'project'] as const) {
    if (table === 'project') await api.db.deleteFrom('activity').where('org_id', '=', bare.id).execute();
    await api.db.deleteFrom(table).where('org_id', '=', bare.id).execute();
  }
  foreignOrgs = [
    { what: 'an org', id: foreign.orgId },
    { what: 'an org with little in it', id: (await api.makeOrg()).orgId },
    bare,
  ];
  requesters = await makeRequesters();
  await markUsed();
});
after(() => api.close());

/** Marks every credential as just used for an hour: else a measured call may record its use. */
async function markUsed(): Promise<void> {
  const later = new Date(Date.now() + 3_600_000);
  for (const table of ['api_key', 'agent_token'] as const)
    await api.db.updateTable(table).set({ last_used_at: later }).execute();
  await api.db.updateTable('session').set({ lastUsedAt: later }).execute();
}

async function makeRequesters(): Promise<Requester[]> {
  const { db } = api;
  const { owner } = own;
  const viewer = await makePerson(db, { [own.orgId]: 'viewer' });
  const both = await makePerson(db, { [own.orgId]: 'owner', [foreign.orgId]: 'owner' });
  const key = async (createdBy: string, scopes: string[] | null = null): Promise<string> =>
    (await makeKeyRow(db, { orgId: own.orgId, createdBy, scopes })).token;
  const ofOwner = (permission: Route['permission']): boolean =>
    permission === null || ROLE_PERMISSIONS.owner.has(permission);
  const ofViewer = (permission: Route['permission']): boolean =>
    permission === null || ROLE_PERMISSIONS.viewer.has(permission);
  const nothing = (permission: Route['permission']): boolean => permission === null;
  const agentToken = await makeAgentTokenRow(db, { userId: owner.userId, canApprove: true, canWake: true });
  return [
    { what: "an owner's session", kind: 'session', token: (await signInAs(db, owner.userId)).token, may: ofOwner },
    { what: "a viewer's session", kind: 'session', token: (await signInAs(db, viewer.userId)).token, may: ofViewer },
    { what: "an owner's key", kind: 'api_key', token: await key(owner.userId), may: ofOwner },
    { what: "a viewer's key", kind: 'api_key', token: await key(viewer.userId), may: ofViewer },
    { what: 'a key with no scopes', kind: 'api_key', token: await key(owner.userId, []), may: nothing },
    { what: 'a key of an owner of both orgs', kind: 'api_key', token: await key(both.userId), may: ofOwner },
    {
      what: 'a personal token',
      kind: 'agent_token',
      token: agentToken.token,
      may: (name) =>
        name === null || agentTokenPermissions({ access: 'read_send', canApprove: true, canWake: true }).has(name),
    },
  ];
}

/** Requests that must be indistinguishable by their responses. */
interface Group {
  /** Description of the group. */
  what: string;
  /** The caller may access the org in the path, so its permission there is checked first. */
  inOwnOrg: boolean;
  code: ErrorCode;
  cases: { what: string; params: Readonly<Record<string, string>> }[];
}

const casesOf = (
  name: string,
  things: readonly Resource[],
  more: Readonly<Record<string, string>> = {},
): Group['cases'] => things.map(({ what, id }) => ({ what, params: { ...more, [name]: id } }));

/** Path parameters with foreign and unused ids, grouped by the required response. */
function groupsOf(route: Route): Group[] {
  if (route.path.includes('{hostId}')) {
    const unknown = unknownIds('sandboxId').map(({ what, id }) => ({ what, id: id.replace('sbx', 'hst') }));
    return [{ what: 'nothing', inOwnOrg: true, code: 'host_not_found', cases: casesOf('hostId', unknown) }];
  }
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(
    ([, name]) => name as keyof Tenant['resources'] | 'orgId' | 'token',
  );
  const [first, second] = names;
  if (first === undefined || first === 'token') return [];
  if (first === 'tokenId') {
    return [
      {
        what: "another's",
        inOwnOrg: false,
        code: 'agent_token_access_denied',
        cases: casesOf(first, foreign.resources.tokenId),
      },
      { what: 'nothing', inOwnOrg: false, code: 'agent_token_not_found', cases: casesOf(first, unknownIds(first)) },
    ];
  }
  if (first === 'signInId') {
    const cases = [...casesOf(first, foreign.resources.signInId), ...casesOf(first, unknownIds(first))];
    return [{ what: "another's or nothing", inOwnOrg: false, code: 'sign_in_not_found', cases }];
  }
  if (first !== 'orgId') {
    assert.ok(
      first === 'sandboxId' || first === 'sessionId',
      `${route.path} names a thing that this test does not know`,
    );
    // Access to the sandbox is checked before the look-up of its preview link or process.
    const below = {
      ...(route.path.includes('{previewId}') ? { previewId: newId('previewLink') } : {}),
      ...(route.path.includes('{processId}') ? { processId: newId('process') } : {}),
    };
    return [
      {
        what: 'foreign',
        inOwnOrg: false,
        code: 'org_access_denied',
        cases: casesOf(first, foreign.resources[first], below),
      },
      {
        what: 'nothing',
        inOwnOrg: false,
        code: NAMED_IN_PATHS[first],
        cases: casesOf(first, unknownIds(first), below),
      },
    ];
  }
  if (second === undefined) {
    return [
      { what: 'foreign org', inOwnOrg: false, code: 'org_access_denied', cases: casesOf('orgId', foreignOrgs) },
      { what: 'no org', inOwnOrg: false, code: 'org_not_found', cases: casesOf('orgId', unknownIds('orgId')) },
    ];
  }
  const below = route.path.endsWith('/agent-credentials/{agent}') ? { agent: 'agent_one' } : {};
  assert.ok(second !== 'orgId' && second !== 'token' && names.length === 2 + Object.keys(below).length);
  const nothing = unknownIds(second);
  const anything = [...foreign.resources[second], ...own.resources[second], ...nothing];
  const elsewhere = (org: Resource): Group['cases'] =>
    casesOf(second, anything, { orgId: org.id, ...below }).map(({ what, params }) => ({
      what: `${org.what}, ${what}`,
      params,
    }));
  const here = (things: readonly Resource[]): Group['cases'] => casesOf(second, things, { orgId: own.orgId, ...below });
  return [
    // Users and their tokens belong to no org: a non-member is treated like an unknown user.
    ...(second === 'userId' || second === 'tokenId'
      ? [
          {
            what: 'no member',
            inOwnOrg: true,
            code: second === 'userId' ? ('member_not_found' as const) : ('agent_token_not_found' as const),
            cases: here([...foreign.resources[second], ...nothing]),
          },
        ]
      : [
          {
            what: 'own org, foreign thing',
            inOwnOrg: true,
            code: 'org_access_denied' as const,
            cases: here(foreign.resources[second]),
          },
          { what: 'own org, nothing', inOwnOrg: true, code: notFoundCode(second), cases: here(nothing) },
        ]),
    {
      what: 'foreign org, anything',
      inOwnOrg: false,
      code: 'org_access_denied',
      cases: foreignOrgs.flatMap(elsewhere),
    },
    {
      what: 'no org, anything',
      inOwnOrg: false,
      code: 'org_not_found',
      cases: unknownIds('orgId').flatMap(elsewhere),
    },
  ];
}

function notFoundCode(name: string): ErrorCode {
  assert.ok(Object.hasOwn(NAMED_IN_PATHS, name), `${name} is no name of a thing of an org`);
  return NAMED_IN_PATHS[name as keyof typeof NAMED_IN_PATHS];
}

interface Seen {
  status: number;
  headers: string[];
  text: string;
  statements: string[];
}

const DIFFERS_BY_NATURE = /^(date|x-request-id|x-ratelimit-.*|ratelimit.*)$/;

/**
 * Sends the request; returns the response without the caller's ids, and the SQL that ran for it.
 */
async function look(
  requester: Requester,
  method: string,
  path: string,
  ids: readonly string[],
  body?: unknown,
): Promise<Seen> {
  const withoutIds = (text: string): string => ids.reduce((left, id) => left.replaceAll(id, '{id}'), text);
  const { result, statements } = await recorder.during(async () => {
    const response = await fetch(api.url + path, {
      method,
      headers: {
        authorization: `Bearer ${requester.token}`,
        prefer: 'respond-async',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { response, text: await response.text() };
  });
  const headers = [...result.response.headers]
    .filter(([name]) => !DIFFERS_BY_NATURE.test(name))
    .map((header) => withoutIds(header.join(': ')));
  return { status: result.response.status, headers, text: withoutIds(result.text), statements };
}

/** All rows of the other org, to detect any change. */
async function rowsOfForeign(): Promise<unknown> {
  const { orgId, owner } = foreign;
  const of = (table: 'sandbox' | 'project' | 'api_key' | 'invitation' | 'membership' | 'activity' | 'org_domain') =>
    api.db.selectFrom(table).selectAll().where('org_id', '=', orgId).execute();
  return {
    sandboxes: await of('sandbox'),
    projects: await of('project'),
    keys: await of('api_key'),
    invitations: await of('invitation'),
    members: await of('membership'),
    activity: await of('activity'),
    domains: await of('org_domain'),
    tokens: await api.db.selectFrom('agent_token').selectAll().where('user_id', '=', owner.userId).execute(),
  };
}

for (const route of ROUTES.filter(({ path }) => path.includes('{') && !path.includes('{token}'))) {
  test(`${route.name}: resources of another org are refused alike, with the same statements`, async () => {
    const { body } = await prepareRequest(route, { api, org: { ...api, projectId: own.projectId }, caller: own.owner });
    const rowsBefore = await rowsOfForeign();
    for (const requester of requesters) {
      for (const { what, inOwnOrg, code, cases } of groupsOf(route)) {
        let expected = code;
        if (!route.auth.includes(requester.kind)) expected = 'auth_kind_not_allowed';
        else if (inOwnOrg && !requester.may(route.permission)) expected = 'permission_denied';
        let first: Seen | undefined;
        for (const { what: which, params } of cases) {
          const title = `${requester.what}: ${what}: ${which}`;
          const seen = await look(requester, route.method, filledPath(route, params), Object.values(params), body);
          const { error } = errorEnvelope.parse(JSON.parse(seen.text));
          assert.deepEqual([seen.status, error.code], [ERRORS[expected].status, expected], `${title}: ${seen.text}`);
          assert.ok(seen.statements.length > 0, 'nothing was recorded');
          first ??= seen;
          assert.deepEqual(seen, first, title);
        }
        assert.ok(cases.length > 1, `${what}: there is nothing to compare`);
      }
    }
    assert.deepEqual(await rowsOfForeign(), rowsBefore);
  });
}

test('every route with ids in its path is called with foreign ids', () => {
  const asked = ROUTES.filter((route) => groupsOf(route).length > 0).map(({ name }) => name);
  // An invitation token is no id: its holder received it by mail.
  const inPath = ROUTES.filter(({ path }) => path.includes('{') && !path.includes('{token}')).map(({ name }) => name);
  assert.deepEqual(asked, inPath);
});

test('a member of both orgs gets the same refusal for a path that mixes them', async () => {
  const both = await makePerson(api.db, { [own.orgId]: 'owner', [foreign.orgId]: 'owner' });
  const requester: Requester = {
    what: 'both',
    kind: 'session',
    token: (await signInAs(api.db, both.userId)).token,
    may: () => true,
  };
  await markUsed();
  const rowsBefore = await rowsOfForeign();
  for (const route of ROUTES) {
    for (const { cases, code } of groupsOf(route).filter(({ what }) => what === 'own org, foreign thing')) {
      let first: Seen | undefined;
      for (const { what, params } of cases) {
        const seen = await look(
          requester,
          route.method,
          filledPath(route, params),
          Object.values(params),
          route.method === 'GET' ? undefined : {},
        );
        assert.equal(errorEnvelope.parse(JSON.parse(seen.text)).error.code, code, `${route.name}: ${what}`);
        first ??= seen;
        assert.deepEqual(seen, first, `${route.name}: ${what}`);
      }
    }
  }
  assert.deepEqual(await rowsOfForeign(), rowsBefore);
});

test("a create in another org's project responds as for a missing project", async () => {
  const path = `/v1/orgs/${own.orgId}/sandboxes`;
  for (const requester of requesters.filter(({ kind, may }) => kind !== 'agent_token' && may('sandbox.create'))) {
    for (const more of [{}, { mode: 'ephemeral', ttlSeconds: 60 }, { machineSize: 'xlarge' }]) {
      let first: Seen | undefined;
      for (const { what, id } of [...unknownIds('projectId'), ...foreign.resources.projectId]) {
        const seen = await look(requester, 'POST', path, [id], { agent: 'agent_one', projectId: id, ...more });
        assert.deepEqual([seen.status, JSON.parse(seen.text).error.code], [400, 'unknown_project'], what);
        first ??= seen;
        assert.deepEqual(seen, first, `${requester.what}: ${what}`);
      }
    }
  }
});

test("filtering the feed by another org's project or sandbox is as empty as by a missing one", async () => {
  for (const requester of requesters.filter(({ kind, may }) => kind !== 'agent_token' && may('activity.read'))) {
    for (const name of ['projectId', 'sandboxId'] as const) {
      let first: Seen | undefined;
      for (const { what, id } of [...unknownIds(name), ...foreign.resources[name]]) {
        const seen = await look(requester, 'GET', `/v1/orgs/${own.orgId}/activity?${name}=${id}`, [id]);
        assert.deepEqual(JSON.parse(seen.text), { activity: [], nextCursor: null, hasMore: false }, what);
        first ??= seen;
        assert.deepEqual(seen, first, `${requester.what}: ${what}`);
      }
    }
  }
});

test("filtering usage by another org's project or end user responds as for missing ones", async () => {
  for (const requester of requesters.filter(({ kind, may }) => kind !== 'agent_token' && may('billing.read'))) {
    let first: Seen | undefined;
    for (const { what, id } of [...unknownIds('projectId'), ...foreign.resources.projectId]) {
      const seen = await look(requester, 'GET', `/v1/orgs/${own.orgId}/usage?projectId=${id}`, [id]);
      assert.deepEqual([seen.status, JSON.parse(seen.text).error.code], [400, 'unknown_project'], what);
      first ??= seen;
      assert.deepEqual(seen, first, `${requester.what}: ${what}`);
    }
  }
  const endUserId = 'whose sandbox runs elsewhere';
  await sql`
    insert into usage_interval (id, sandbox_id, org_id, project_id, end_user_id, vcpu, memory_gb, disk_gb, during)
    values (${newId('usageInterval')}, ${newId('sandbox')}, ${foreign.orgId}, 'prj_x', ${endUserId}, 1, 1, 10,
      tstzrange(now() - interval '1 day', null))`.execute(api.db);
  const requester = requesters[0] as Requester;
  const ofEndUser = await look(
    requester,
    'GET',
    `/v1/orgs/${own.orgId}/usage?endUserId=${encodeURIComponent(endUserId)}`,
    [],
  );
  assert.equal(JSON.parse(ofEndUser.text).usedMachineHours, 0);
  assert.ok(!(await look(requester, 'GET', `/v1/orgs/${own.orgId}/usage/end-users`, [])).text.includes(endUserId));
});

test("discovery by another org's ids responds alike, and by missing ids alike", async () => {
  const groups = [
    { name: 'orgId', code: 'org_access_denied', things: foreignOrgs },
    { name: 'orgId', code: 'org_not_found', things: unknownIds('orgId') },
    { name: 'projectId', code: 'org_access_denied', things: foreign.resources.projectId },
    { name: 'projectId', code: 'project_not_found', things: unknownIds('projectId') },
    { name: 'sandboxId', code: 'org_access_denied', things: foreign.resources.sandboxId },
    { name: 'sandboxId', code: 'sandbox_not_found', things: unknownIds('sandboxId') },
  ] as const;
  const { token } = await signInAs(api.db, foreign.owner.userId);
  const page = await api.call('GET', `/v1/agent-sessions?limit=1&orgId=${foreign.orgId}`, { token });
  assert.equal(page.body.hasMore, true, 'the other org has sessions');
  for (const requester of requesters.filter(({ may }) => may('agent_session.read'))) {
    for (const { name, code, things } of groups) {
      let first: Seen | undefined;
      for (const { what, id } of things) {
        const seen = await look(requester, 'GET', `/v1/agent-sessions?${name}=${id}`, [id]);
        assert.deepEqual([seen.status, JSON.parse(seen.text).error.code], [ERRORS[code].status, code], what);
        first ??= seen;
        assert.deepEqual(seen, first, `${requester.what}: ${name}: ${what}`);
      }
      assert.ok(things.length > 1, `${name}: there is nothing to compare`);
    }
    for (const query of ['', `?after=${page.body.nextCursor}`]) {
      const { status, text } = await look(requester, 'GET', `/v1/agent-sessions${query}`, []);
      assert.equal(status, 200, text);
      if (requester.what !== 'a key of an owner of both orgs') assert.ok(!text.includes(foreign.orgId), requester.what);
    }
  }
});

const LISTS = ROUTES.filter(
  ({ method, path, request }) =>
    method === 'GET' && path.startsWith('/v1/orgs/') && 'limit' in (request.query?.shape ?? {}),
);

test("no list contains another org's items, even with a cursor from that org", async () => {
  const ids = [
    foreign.orgId,
    foreign.owner.email,
    ...Object.values(foreign.resources).flatMap((things) => things.map(({ id }) => id)),
  ];
  const { token: foreignToken } = await signInAs(api.db, foreign.owner.userId);
  // Both feeds need an entry.
  for (const { orgId, token } of [
    { orgId: own.orgId, token: requesters[0]?.token },
    { orgId: foreign.orgId, token: foreignToken },
  ]) {
    for (const name of ['one', 'two'])
      await api.call('POST', `/v1/orgs/${orgId}/projects`, { body: { name }, token: token ?? null });
  }
  // An export leaves out the latest entries.
  await sql`update activity set at = at - interval '1 hour'`.execute(api.db);
  assert.ok(LISTS.length >= 6);
  for (const route of LISTS) {
    const place = await api.call('GET', `${filledPath(route, { orgId: foreign.orgId })}?limit=1`, {
      token: foreignToken,
    });
    const cursor =
      route.response.ndjson === true ? place.body[0]?.cursor : (place.body.nextCursor ?? place.body.cursor);
    const after = 'since' in (route.request.query?.shape ?? {}) ? 'since' : 'after';
    assert.equal(typeof cursor, 'string', `${route.name} has no second page`);
    for (const query of ['', '?limit=200', `?${after}=${cursor}`, `?limit=1&${after}=${cursor}`]) {
      const seen = await look(requesters[0] as Requester, 'GET', filledPath(route, { orgId: own.orgId }) + query, []);
      assert.equal(seen.status, 200, seen.text);
      assert.deepEqual(
        ids.filter((id) => seen.text.includes(id)),
        [],
        `${route.name}${query}`,
      );
    }
  }
});
