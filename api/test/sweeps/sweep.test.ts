// Sweeps generated from the contract: rules of every route, including future ones.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { AuthKind, Route } from '@berth/contract/route/route.ts';
import { ROUTES, type RouteName, type RouteNamed } from '@berth/contract/routes.ts';
import { BOUND_ROUTES } from '../../src/routes/bound-routes.ts';
import { newToken } from '../../src/services/access/bearer-token.ts';
import { linkTokenSha256 } from '../../src/services/access/one-time-links.ts';
import {
  routeOf,
  signInAs,
  startApi,
  type Answer,
  type CallOptions,
  type TestApi,
  type TestOrg,
} from '../world/api.ts';
import { idleMetrics } from '../world/host-stand-in.ts';
import { makeAgentTokenRow, makeKeyRow, makePerson, type Person } from '../world/people-rows.ts';
import { callOptionsOf, filledPath, prepareRequest, type PreparedRequest } from './route-requests.ts';

let api: TestApi;
/** An owner of the first org, with a credential of each kind and all its possible permissions. */
let owner: Person;
let tokens: { readonly [kind in AuthKind]: { credentialId: string | null; token: string } };
before(async () => {
  api = await startApi({ durable: false });
  api.front.exec = () => Promise.resolve({ exitCode: 0, stdout: 'out', stderr: '', truncated: false, timedOut: false });
  api.front.metrics = () => idleMetrics();
  owner = await makePerson(api.db, { [api.orgId]: 'owner' });
  const key = await makeKeyRow(api.db, { orgId: api.orgId, createdBy: owner.userId });
  const agentToken = await makeAgentTokenRow(api.db, { userId: owner.userId, canApprove: true, canWake: true });
  tokens = {
    session: { credentialId: null, token: (await signInAs(api.db, owner.userId)).token },
    api_key: { credentialId: key.id, token: key.token },
    agent_token: { credentialId: agentToken.id, token: agentToken.token },
  };
});
after(() => api.close());

interface Changes extends CallOptions {
  /** Replaces parameters of the path. */
  params?: Readonly<Record<string, string>>;
}

const prepare = (route: Route, org: TestOrg): Promise<PreparedRequest> =>
  prepareRequest(route, { api, org, caller: owner });

async function send(
  route: Route,
  prepared: PreparedRequest,
  { params, ...changed }: Changes,
  callApi = api.call,
): Promise<Answer> {
  const options = { ...callOptionsOf(prepared), token: tokens.session.token };
  try {
    return await callApi(route.method, filledPath(route, { ...prepared.params, ...params }), {
      ...options,
      ...changed,
    });
  } finally {
    await prepared.undo?.();
  }
}

/**
 * Calls the route on resources of the org as its owner, in a session; `changed` replaces parts of a
 * request that would succeed.
 */
async function callRoute(route: Route, org: TestOrg, changed: Changes = {}, callApi = api.call): Promise<Answer> {
  return await send(route, await prepare(route, org), changed, callApi);
}

type ChangingRoute = { [name in RouteName]: RouteNamed<name>['activity'] extends null ? never : name }[RouteName];
type Subject = readonly [kind: string, id: string];
const sandboxOf = (_: Answer, { sandboxId = '' }: PreparedRequest['params']): Subject => ['sandbox', sandboxId];
const orgOf = (_: Answer, { orgId = '' }: PreparedRequest['params']): Subject => ['org', orgId];
const memberOf = (_: Answer, { userId = '' }: PreparedRequest['params']): Subject => ['user', userId];
const projectOf = ({ body }: Answer): Subject => ['project', body.project.id];
const invitationOf = ({ body }: Answer): Subject => ['invitation', body.invitation.id];
const apiKeyOf = ({ body }: Answer): Subject => ['api_key', body.apiKey.id];
const agentSessionOf = (_: Answer, { sessionId = '' }: PreparedRequest['params']): Subject => [
  'agent_session',
  sessionId,
];
const agentTokenOf = ({ body }: Answer): Subject => ['agent_token', body.agentToken.id];

/** Subject of the activity row. */
const SUBJECTS: {
  readonly [name in ChangingRoute]: (answer: Answer, params: PreparedRequest['params']) => Subject | Promise<Subject>;
} = {
  leaveOrg: () => ['user', owner.userId],
  createAgentToken: agentTokenOf,
  revokeAgentToken: agentTokenOf,
  revokeOrgAgentToken: agentTokenOf,
  endSignIn: (_, { signInId = '' }) => ['sign_in', signInId],
  endOtherSignIns: () => ['user', owner.userId],
  updateMe: () => ['user', owner.userId],
  createOrg: ({ body }) => ['org', body.org.id],
  updateOrg: orgOf,
  updateMember: memberOf,
  removeMember: memberOf,
  updateSso: orgOf,
  claimDomain: orgOf,
  verifyDomain: orgOf,
  removeDomain: orgOf,
  createInvitation: invitationOf,
  revokeInvitation: invitationOf,
  acceptInvitation: async (_, { token = '' }) => {
    const invited = api.db.selectFrom('invitation').select('id').where('token_sha256', '=', linkTokenSha256(token));
    return ['invitation', (await invited.executeTakeFirstOrThrow()).id];
  },
  createApiKey: apiKeyOf,
  revokeApiKey: apiKeyOf,
  createProject: projectOf,
  updateProject: projectOf,
  deleteProject: projectOf,
  createCheckout: orgOf,
  putAgentCredentials: (_, { projectId = '' }) => ['project', projectId],
  deleteAgentCredentials: (_, { projectId = '' }) => ['project', projectId],
  updateUsageGuardrails: orgOf,
  updateProjectUsageGuardrails: (_, { projectId = '' }) => ['project', projectId],
  createAgentSession: ({ body }) => ['agent_session', body.id],
  recoverAgentSession: agentSessionOf,
  sendAgentMessage: agentSessionOf,
  answerAgentPrompt: agentSessionOf,
  interruptAgentTurn: agentSessionOf,
  createSandbox: ({ body }) => ['sandbox', body.sandbox.id],
  execInSandbox: sandboxOf,
  startProcess: sandboxOf,
  signalProcess: sandboxOf,
  removeProcess: sandboxOf,
  tunnelToSandbox: sandboxOf,
  terminalInSandbox: sandboxOf,
  createPreview: sandboxOf,
  revokePreview: ({ body }) => ['preview_link', body.preview.id],
  writeFile: sandboxOf,
  deleteFile: sandboxOf,
  moveFile: sandboxOf,
  setFileMode: sandboxOf,
  createFolder: sandboxOf,
  uploadFile: sandboxOf,
  createFileLink: sandboxOf,
  sleepSandbox: sandboxOf,
  stopSandbox: sandboxOf,
  wakeSandbox: sandboxOf,
  resumeSandbox: sandboxOf,
  resizeSandbox: sandboxOf,
  setEgress: sandboxOf,
  updateSandbox: sandboxOf,
  replaceVariables: sandboxOf,
  updateVariables: sandboxOf,
  renewSandbox: sandboxOf,
  sampleMetrics: sandboxOf,
  destroySandbox: sandboxOf,
};

const closed = ROUTES.filter((route) => route.auth.length > 0);

test('a NUL in a parameter of any query is refused, or matches nothing', async () => {
  for (const route of ROUTES) {
    for (const name of Object.keys(route.request.query?.shape ?? {})) {
      const prepared = await prepare(route, api);
      const url = new URL(filledPath(route, prepared.params), api.url);
      url.searchParams.set(name, '\0');
      const options = { ...callOptionsOf(prepared), token: tokens.session.token };
      const { status, body } = await api.call(route.method, url.pathname + url.search, options);
      await prepared.undo?.();
      assert.ok(status < 500, `${route.name} with ${name}: ${status} ${JSON.stringify(body)}`);
    }
  }
});

test("the server's routes equal the contract's", () => {
  assert.deepEqual(
    BOUND_ROUTES.map(({ route }) => route),
    BOUND_ROUTES.map(({ route }) => ROUTES.find((known) => known.name === route.name)),
  );
  const named = (routes: readonly Route[]): string[] =>
    routes.map((route) => `${route.method} ${route.path}`).toSorted();
  assert.deepEqual(named(BOUND_ROUTES.map(({ route }) => route)), named(ROUTES));
});

for (const route of ROUTES) {
  test(`${route.name}: a fully authorised caller gets a response of the route's schema`, async () => {
    for (const callApi of [api.call, api.callDirectly]) {
      const answer = await callRoute(route, api, {}, callApi);
      assert.equal(answer.status, route.response.status, JSON.stringify(answer.body));
    }
  });

  const trace = route.activity === null ? 'no row' : `a ${route.activity} row`;
  test(`${route.name}: leaves ${trace} in the activity feed`, async () => {
    // Input of a process belongs to its start.
    const isInput = route.name === 'writeProcessInput' || route.name === 'resizeProcess';
    const follows = route.name === 'followProcessOutput';
    if ((route.method !== 'GET' || route.websocket === true) && !isInput && !follows)
      assert.notEqual(route.activity, null, 'a route that changes something must say what it leaves');
    const kinds = route.auth.length === 0 ? (['session'] as const) : route.auth;
    for (const kind of kinds) {
      const prepared = await prepare(route, api);
      await api.db.deleteFrom('activity').execute();
      const { token, credentialId } = tokens[kind];
      const answer = await send(route, prepared, { token });
      const left = await api.db
        .selectFrom('activity')
        .select(['kind', 'actor_kind', 'actor_id', 'actor_user_id', 'subject_kind', 'subject_id', 'request_id'])
        .execute();
      const subjectOf = (SUBJECTS as Partial<typeof SUBJECTS>)[route.name as ChangingRoute];
      const [subject_kind, subject_id] = (await subjectOf?.(answer, prepared.params)) ?? [];
      const row = { kind: route.activity, actor_kind: kind, actor_id: credentialId, actor_user_id: owner.userId };
      assert.deepEqual(
        left,
        route.activity === null
          ? []
          : [{ ...row, subject_kind, subject_id, request_id: answer.headers.get('x-request-id') }],
        `with ${kind}: ${JSON.stringify(answer.body)}`,
      );
    }
  });
}

for (const route of closed) {
  for (const [what, changed] of Object.entries<CallOptions>({
    'no token': { token: null },
    'a well-formed token that nobody has': { token: newToken('api_key') },
  })) {
    test(`${route.name}: ${what} is 401, whatever the body`, async () => {
      const answer = await callRoute(route, api, route.method === 'GET' ? changed : { ...changed, rawBody: '{' });
      assert.equal(answer.status, 401);
      assert.equal(answer.body.error.code, 'unauthenticated');
      assert.equal(answer.headers.get('www-authenticate'), 'Bearer');
    });
  }

  if (/\{(orgId|sandboxId|sessionId)\}/.test(route.path)) {
    test(`${route.name}: a resource of another org is 403, whatever the body`, async () => {
      const answer = await callRoute(route, await api.makeOrg(), route.method === 'GET' ? {} : { rawBody: '{' });
      assert.equal(answer.status, 403);
      assert.equal(answer.body.error.code, 'org_access_denied');
    });
  }

  for (const [, name = ''] of route.path.matchAll(/\{(\w+)\}/g)) {
    for (const [what, missing] of [
      ['a missing', (id: string) => id.slice(0, -24) + 'a'.repeat(24)],
      ['an impossible', (id: string) => `${id.slice(0, 4)}%00`],
      ['an over-long', (id: string) => id.slice(0, 4) + 'a'.repeat(600)],
    ] as const) {
      test(`${route.name}: ${what} ${name} is 404`, async () => {
        const prepared = await prepare(route, api);
        const answer = await send(route, prepared, { params: { [name]: missing(prepared.params[name] ?? '') } });
        assert.equal(answer.status, 404, JSON.stringify(answer.body));
      });
    }
  }
}

const isUpload = (route: Route): boolean => route.upload === true;
for (const route of ROUTES.filter((one) => one.method !== 'GET' && !isUpload(one))) {
  const { body } = route.request;
  const issues = body?.safeParse({ surprise: 1 }).error?.issues ?? [];
  const refuses = body === undefined || issues.some(({ code }) => code === 'unrecognized_keys');
  test(`${route.name}: an unknown body field is ${refuses ? 'refused by name' : 'ignored'}`, async () => {
    const prepared = await prepare(route, api);
    const answer = await send(
      route,
      { ...prepared, body: { ...(prepared.body as object | undefined), surprise: 1 } },
      {},
    );
    if (!refuses) {
      assert.equal(answer.status, route.response.status);
      return;
    }
    assert.equal(answer.status, 400);
    assert.equal(answer.body.error.code, 'invalid_request');
    assert.match(answer.body.error.message, /body\.surprise: unknown field/);
  });

  for (const [what, changed, code] of [
    ['malformed JSON', { rawBody: '{"a":' }, 'invalid_json'],
    ['a body that is not UTF-8', { rawBody: new Uint8Array([0x22, 0xff, 0x22]) }, 'invalid_json'],
    ['a field named __proto__', { rawBody: '{"__proto__":{}}' }, 'invalid_request'],
    ['a body that is no object', { rawBody: '[]' }, 'invalid_request'],
    [
      'a form',
      { rawBody: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
      'unsupported_media_type',
    ],
    ['plain text', { rawBody: 'a', headers: { 'content-type': 'text/plain' } }, 'unsupported_media_type'],
    ['a body beyond the limit', { rawBody: `{"a":"${'x'.repeat(route.bodyBytes ?? 262_144)}"}` }, 'payload_too_large'],
  ] as const) {
    test(`${route.name}: ${what} is ${code}`, async () => {
      const answer = await callRoute(route, api, changed);
      assert.equal(answer.body.error.code, code, JSON.stringify(answer.body));
    });
  }
}

for (const route of ROUTES) {
  const title =
    route.deprecated === undefined ? 'has no deprecation headers' : 'names the date of deprecation and the successor';
  test(`${route.name}: every response ${title}`, async () => {
    for (const changed of [{}, route.auth.length === 0 ? {} : { token: null }]) {
      const answer = await callRoute(route, api, changed);
      if (route.deprecated === undefined) {
        assert.deepEqual([answer.headers.get('deprecation'), answer.headers.get('link')], [null, null]);
        continue;
      }
      // RFC 9745: a date as a structured field, in seconds.
      assert.equal(answer.headers.get('deprecation'), `@${Date.parse(route.deprecated.since) / 1_000}`);
      const link = /^<(\/v1\/[^>{}]+)>; rel="successor-version"$/.exec(answer.headers.get('link') ?? '');
      const successor = routeOf(route.method, link?.[1] ?? '');
      assert.equal(successor?.path, route.deprecated.successor);
      assert.equal(successor?.deprecated, undefined);
    }
  });
}

test('a deprecated alias links to its successor with the id of its own path', async () => {
  const { id } = await api.makeSandbox('ready');
  const answer = await api.call('POST', `/v1/sandboxes/${id}/stop`, { headers: { prefer: 'respond-async' } });
  assert.equal(answer.headers.get('link'), `</v1/sandboxes/${id}/sleep>; rel="successor-version"`);
  const strange = await api.call('POST', '/v1/sandboxes/%3E%3B%20a/resume');
  assert.equal(strange.headers.get('link'), '</v1/sandboxes/%3E%3B%20a/wake>; rel="successor-version"');
});

test('every path responds to unsupported methods with 405 and Allow', async () => {
  for (const path of new Set(ROUTES.map((route) => route.path))) {
    const methods = ROUTES.filter((route) => route.path === path).map((route) => route.method as string);
    const unused = (['PUT', 'DELETE', 'PATCH'] as const).find((method) => !methods.includes(method));
    assert.ok(unused !== undefined, `every method is possible on ${path}`);
    const answer = await api.call(unused, path.replaceAll(/\{(\w+)\}/g, 'x'));
    assert.equal(answer.status, 405);
    assert.deepEqual(
      answer.headers.get('allow')?.split(', '),
      [...methods, ...(methods.includes('GET') ? ['HEAD'] : [])].toSorted(),
    );
  }
});

test('a path with an invalid escape is 400 with the envelope', async () => {
  const answer = await api.call('GET', '/v1/sandboxes/%zz');
  assert.equal(answer.body.error.code, 'invalid_request');
});

test('an unknown path is 404 with the envelope, with or without a token', async () => {
  for (const path of ['/nothing', '/v1', '/v1/nothing', '/v2/me', '/v1/me/', '/health/x', '/V1/me']) {
    for (const token of [api.token, null]) {
      const answer = await api.call('GET', path, { token });
      assert.equal(answer.status, 404, path);
      assert.equal(answer.body.error.code, 'route_not_found');
    }
  }
});
