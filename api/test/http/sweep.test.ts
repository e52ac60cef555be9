// Sweeps generated from the contract: what must hold of every route, so that a new one cannot forget it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { activityKind } from '@berth/contract/activity.ts';
import { ROLE_PERMISSIONS } from '@berth/contract/permissions.ts';
import type { Route } from '@berth/contract/route.ts';
import { ROUTES } from '@berth/contract/routes.ts';
import { BOUND_ROUTES } from '../../src/routes/bound-routes.ts';
import { newToken } from '../../src/services/bearer-token.ts';
import type { SandboxStatus } from '@berth/contract/sandbox-state.ts';
import type { NewSandbox } from '../../src/store/schema.ts';
import { routeOf, startApi, type Answer, type CallOptions, type TestApi, type TestOrg } from '../api.ts';
import { idleMetrics } from '../workers/host-stand-in.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
  api.front.exec = () => Promise.resolve({ exitCode: 0, stdout: 'out', stderr: '', truncated: false, timedOut: false });
  api.front.metrics = () => idleMetrics();
});
after(() => api.close());

/** A body that each route with one accepts. */
const BODIES: Record<string, (org: TestOrg) => object> = {
  createProject: () => ({ name: 'swept', useCase: 'external' }),
  createSandbox: (org) => ({ agent: 'agent_one', projectId: org.projectId }),
  execInSandbox: () => ({ command: 'true' }),
  destroySandbox: () => ({}),
  resizeSandbox: () => ({ memoryGb: 2 }),
};

/** The sandbox that each route succeeds on, where that is not a ready one. */
const SANDBOXES: Record<string, { status: SandboxStatus; changes?: () => Partial<NewSandbox> }> = {
  wakeSandbox: { status: 'stopped' },
  resumeSandbox: { status: 'stopped' },
  renewSandbox: {
    status: 'ready',
    changes: () => ({ mode: 'ephemeral', ttl_seconds: 60, expires_at: new Date(Date.now() + 60_000) }),
  },
};

/** Calls the route on resources of the org; `changed` replaces parts of a request that would succeed. */
async function callRoute(route: Route, org: TestOrg, changed: CallOptions = {}): Promise<Answer> {
  let path = route.path.replace('{orgId}', org.orgId);
  if (path.includes('{sandboxId}')) {
    const { status, changes } = SANDBOXES[route.name] ?? { status: 'ready' };
    const sandbox = await api.makeSandbox(status, { org_id: org.orgId, project_id: org.projectId, ...changes?.() });
    path = path.replace('{sandboxId}', sandbox.id);
  }
  assert.doesNotMatch(path, /[{}]/, 'the sweep does not know how to fill this path');
  const body = BODIES[route.name]?.(org);
  // Steps are only noted here, so a transition would be waited for in vain.
  return await api.call(route.method, path, { ...(body === undefined ? {} : { body }), headers: { prefer: 'respond-async' }, ...changed });
}

const closed = ROUTES.filter((route) => route.auth.length > 0);

test("the server's set of routes is the contract's, and nothing beside it answers", () => {
  assert.deepEqual(
    BOUND_ROUTES.map(({ route }) => route),
    BOUND_ROUTES.map(({ route }) => ROUTES.find((known) => known.name === route.name)),
  );
  const named = (routes: readonly Route[]): string[] => routes.map((route) => `${route.method} ${route.path}`).toSorted();
  assert.deepEqual(named(BOUND_ROUTES.map(({ route }) => route)), named(ROUTES));
  const printed = api.app.printRoutes({ commonPrefix: false, includeHooks: false });
  const served = [...printed.matchAll(/\(([A-Z, ]+)\)/g)].flatMap(([, methods]) => (methods ?? '').split(', '));
  const expected = ROUTES.flatMap((route) => (route.method === 'GET' ? ['GET', 'HEAD'] : [route.method]));
  assert.deepEqual(served.toSorted(), expected.toSorted());
});

for (const route of ROUTES) {
  test(`${route.name}: a caller with every right succeeds and is answered by the route's own schema`, async () => {
    const answer = await callRoute(route, api);
    assert.equal(answer.status, route.response.status, JSON.stringify(answer.body));
  });

  test(`${route.name}: ${route.activity === null ? 'leaves no row' : `leaves a ${route.activity} row`} in the activity feed`, async () => {
    if (route.method !== 'GET') assert.notEqual(route.activity, null, 'a route that changes something must say what it leaves');
    const rows = async (): Promise<string[]> =>
      (await api.db.selectFrom('activity').select(['id', 'kind', 'actor_kind', 'actor_user_id']).execute()).map((row) =>
        JSON.stringify(row),
      );
    const before = new Set(await rows());
    await callRoute(route, api);
    const left = (await rows()).filter((row) => !before.has(row)).map((row) => JSON.parse(row) as Record<string, string>);
    assert.deepEqual(
      left.map((row) => [row['kind'], row['actor_kind'], row['actor_user_id']]),
      route.activity === null ? [] : [[activityKind.parse(route.activity), 'api_key', api.userId]],
    );
  });
}

for (const route of closed) {
  for (const [what, changed] of Object.entries<CallOptions>({
    'no token': { token: null },
    'a token of a kind unknown here': { token: 'ghp_0123456789' },
    'a token with a wrong checksum': { token: `${newToken('api_key').slice(0, -1)}!` },
    'a well-formed token that nobody has': { token: newToken('api_key') },
    'another scheme than Bearer': { token: null, headers: { authorization: 'Basic YTpi' } },
  })) {
    test(`${route.name}: ${what} is 401, whatever the body`, async () => {
      const answer = await callRoute(route, api, route.method === 'GET' ? changed : { ...changed, rawBody: '{' });
      assert.equal(answer.status, 401);
      assert.equal(answer.body.error.code, 'unauthenticated');
      assert.equal(answer.headers.get('www-authenticate'), 'Bearer');
    });
  }

  if (/\{(orgId|sandboxId)\}/.test(route.path)) {
    test(`${route.name}: a resource of another org is 403, whatever the body`, async () => {
      const other = await api.makeOrg();
      const answer = await callRoute(route, other, route.method === 'GET' ? {} : { rawBody: '{' });
      assert.equal(answer.status, 403);
      assert.equal(answer.body.error.code, 'org_access_denied');
    });

    for (const [what, id] of [
      ['a missing', 'aaaaaaaaaaaaaaaaaaaaaaaa'],
      ['an impossible', '%00'],
      ['an over-long', 'a'.repeat(600)],
    ] as const) {
      test(`${route.name}: ${what} resource is 404`, async () => {
        const path = route.path.replace('{orgId}', `org_${id}`).replace('{sandboxId}', `sbx_${id}`);
        const answer = await api.call(route.method, path, route.method === 'GET' ? {} : { rawBody: '{' });
        assert.equal(answer.status, 404);
      });
    }

    test(`${route.name}: a key whose creator left the org is 403`, async () => {
      const org = await api.makeOrg();
      await api.db.deleteFrom('membership').where('org_id', '=', org.orgId).execute();
      const answer = await callRoute(route, org, { token: org.token });
      assert.equal(answer.status, 403);
    });
  }

  if (route.permission !== null) {
    const { permission } = route;
    test(`${route.name}: a key whose scopes lack ${permission} is 403 naming it; one with just it succeeds`, async () => {
      for (const scopes of [[], ['api_keys.manage']]) {
        const lacking = await callRoute(route, api, { token: await api.makeKey({ scopes }) });
        assert.equal(lacking.status, 403);
        assert.equal(lacking.body.error.code, 'permission_denied');
        assert.match(lacking.body.error.message, new RegExp(permission.replace('.', '\\.')));
      }
      const having = await callRoute(route, api, { token: await api.makeKey({ scopes: [permission] }) });
      assert.equal(having.status, route.response.status);
    });

    test(`${route.name}: what a key may do follows its creator's role`, async () => {
      for (const role of ['admin', 'operator', 'viewer'] as const) {
        const answer = await callRoute(route, api, { token: await api.makeKey({ role }) });
        assert.equal(answer.status, ROLE_PERMISSIONS[role].has(permission) ? route.response.status : 403, role);
      }
    });
  } else {
    test(`${route.name}: a key with no scopes at all may use it`, async () => {
      const answer = await callRoute(route, api, { token: await api.makeKey({ scopes: [] }) });
      assert.equal(answer.status, 200);
    });
  }
}

for (const route of ROUTES.filter(({ request }) => request.body !== undefined)) {
  const refuses = route.request.body?.safeParse({ surprise: 1 }).error?.issues.some((issue) => issue.code === 'unrecognized_keys') ?? false;
  test(`${route.name}: an unknown body field is ${refuses ? 'refused by name' : 'ignored'}`, async () => {
    const answer = await callRoute(route, api, { body: { ...BODIES[route.name]?.(api), surprise: 1 } });
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
    ['a form', { rawBody: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } }, 'unsupported_media_type'],
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
    route.deprecated === undefined ? 'has no word of deprecation' : 'says since when it is deprecated, and what to call instead';
  test(`${route.name}: every answer ${title}`, async () => {
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

test('every path answers a method it does not have with 405 and the header Allow', async () => {
  for (const path of new Set(ROUTES.map((route) => route.path))) {
    const methods = ROUTES.filter((route) => route.path === path).map((route) => route.method as string);
    const answer = await api.call('DELETE', path.replaceAll(/\{(\w+)\}/g, 'x'));
    assert.equal(answer.status, 405);
    assert.deepEqual(answer.headers.get('allow')?.split(', '), [...methods, ...(methods.includes('GET') ? ['HEAD'] : [])].toSorted());
  }
});

test('a path that is no valid escape is 400 with the envelope', async () => {
  const answer = await api.call('GET', '/v1/sandboxes/%zz');
  assert.equal(answer.body.error.code, 'invalid_request');
});

test('an unknown path is 404 with the envelope, with a token or without', async () => {
  for (const path of ['/', '/v1', '/v1/nothing', '/v2/me', '/v1/me/', '/health/x', '/V1/me']) {
    for (const token of [api.token, null]) {
      const answer = await api.call('GET', path, { token });
      assert.equal(answer.status, 404, path);
      assert.equal(answer.body.error.code, 'route_not_found');
    }
  }
});
