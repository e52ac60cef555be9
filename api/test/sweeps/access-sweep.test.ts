// Every route with every kind of credential. Expected results are derived from the contract's data,
// independently of the server's rules. Refusals are compared over HTTP and without it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ErrorCode } from '@berth/contract/route/errors.ts';
import { ERRORS } from '@berth/contract/route/errors.ts';
import { ROLE_PERMISSIONS } from '@berth/contract/route/permissions.ts';
import { isOfOperator, type Route } from '@berth/contract/route/route.ts';
import { ROUTES } from '@berth/contract/routes.ts';
import { startApi, type Answer, type TestApi, type TestOrg } from '../world/api.ts';
import { idleMetrics } from '../world/host-stand-in.ts';
import { makeDeadCredentials, makeLiveCredentials, type Credential, type LiveCredential } from './credentials.ts';
import { makePerson, type Person } from '../world/people-rows.ts';
import { callOptionsOf, filledPath, prepareRequest } from './route-requests.ts';

/** Headers that depend on the call; the number of remaining requests differs between two calls. */
const CALL_HEADERS = [
  'deprecation',
  'link',
  'preference-applied',
  'ratelimit-policy',
  'retry-after',
  'www-authenticate',
] as const;

let api: TestApi;
let credentials: Credential[];
/** Caller of requests with a dead credential. */
let nobody: Person;
before(async () => {
  api = await startApi({ durable: false });
  // Each request has a sandbox of its own.
  const capacity = { capacity_vcpu: 100_000, capacity_memory_mib: 100_000_000, capacity_disk_gib: 10_000_000 };
  await api.db.updateTable('host').set(capacity).execute();
  api.front.exec = () => Promise.resolve({ exitCode: 0, stdout: 'out', stderr: '', truncated: false, timedOut: false });
  api.front.metrics = () => idleMetrics();
  const other: TestOrg = await api.makeOrg();
  credentials = [...(await makeDeadCredentials(api)), ...(await makeLiveCredentials(api, other))];
  nobody = await makePerson(api.db);
});
after(() => api.close());

/** Models all of access control; null for a success. */
function expectedRefusal(route: Route, credential: Credential): ErrorCode | null {
  if (route.auth.length === 0) return null;
  if (credential.kind === null) return 'unauthenticated';
  if (!route.auth.includes(credential.kind)) return 'auth_kind_not_allowed';
  // The sweep's org is the operator's.
  const belongsToOrg = isOfOperator(route) || /\{(orgId|sandboxId|sessionId)\}/.test(route.path);
  if (!belongsToOrg) return expectedWithoutOrg(route, credential);
  if (credential.role === null || credential.boundElsewhere) return 'org_access_denied';
  if (route.permission === null) return null;
  const granted = credential.grants === null || credential.grants.has(route.permission);
  return granted && ROLE_PERMISSIONS[credential.role].has(route.permission) ? null : 'permission_denied';
}

/** A list over orgs requires its permission of the credential, whichever orgs it then shows. */
function expectedWithoutOrg({ permission }: Route, credential: LiveCredential): ErrorCode | null {
  if (permission === null || credential.kind === 'session') return null;
  if (credential.kind === 'api_key' && credential.role === null && !credential.boundElsewhere)
    return 'org_access_denied';
  return credential.grants === null || credential.grants.has(permission) ? null : 'permission_denied';
}

/** Faults of a response and of its feed rows; empty if none. */
async function faultsOf(route: Route, credential: Credential, answer: Answer): Promise<string[]> {
  const refusal = expectedRefusal(route, credential);
  const expected = refusal === null ? `${route.response.status}` : `${ERRORS[refusal].status} ${refusal}`;
  const error = answer.body?.error;
  const came = `${answer.status}${error === undefined ? '' : ` ${error.code}`}`;
  if (came !== expected) return [`${came} instead of ${expected}: ${JSON.stringify(answer.body)}`];
  if (
    refusal === 'permission_denied' &&
    !String(error.message).includes(`the permission ${route.permission} is required`)
  )
    return [`the message does not name ${route.permission}: ${error.message}`];
  const rows = await api.db
    .selectFrom('activity')
    .select(['kind', 'actor_kind', 'actor_id', 'actor_user_id', 'request_id'])
    .execute();
  const wanted = refusal !== null || credential.kind === null ? [] : await expectedRows(route, credential, answer);
  const [left, right] = [JSON.stringify(rows), JSON.stringify(wanted)];
  return left === right ? [] : [`the feed has ${left} instead of ${right}`];
}

/** Feed rows of a success: one, or for a personal resource one in each org of its holder. */
async function expectedRows(route: Route, credential: LiveCredential, answer: Answer): Promise<object[]> {
  if (route.activity === null) return [];
  const row = {
    kind: route.activity,
    actor_kind: credential.kind,
    actor_id: credential.credentialId,
    actor_user_id: credential.holder.userId,
    request_id: answer.headers.get('x-request-id'),
  };
  if (!/^\/v1\/me($|\/agent-tokens|\/sign-ins)/.test(route.path)) return [row];
  const orgs = await api.db
    .selectFrom('membership')
    .select('org_id')
    .where('user_id', '=', credential.holder.userId)
    .execute();
  return orgs.map(() => row);
}

async function ask(route: Route, credential: Credential): Promise<string[]> {
  const prepared = await prepareRequest(route, {
    api,
    org: api,
    caller: credential.kind === null ? nobody : credential.holder,
  });
  await api.db.deleteFrom('activity').execute();
  const options = callOptionsOf(prepared);
  const headers = { ...options.headers };
  if (credential.kind === null && credential.authorization !== null)
    headers['authorization'] = credential.authorization;
  try {
    const path = filledPath(route, prepared.params);
    const asked = { ...options, headers, token: credential.kind === null ? null : credential.token };
    const answer = await api.call(route.method, path, asked);
    // A refusal changes nothing: the same request is refused again.
    const differences =
      expectedRefusal(route, credential) === null
        ? []
        : differencesOf(answer, await api.callDirectly(route.method, path, asked));
    return [...differences, ...(await faultsOf(route, credential, answer))];
  } finally {
    await prepared.undo?.();
  }
}

/** Differences of the responses over HTTP and without it, where they must be equal. */
function differencesOf(overHttp: Answer, direct: Answer): string[] {
  const comparable = ({ status, headers, body }: Answer): string =>
    JSON.stringify([status, CALL_HEADERS.map((name) => headers.get(name)), body]);
  const [left, right] = [comparable(overHttp), comparable(direct)];
  return left === right ? [] : [`over HTTP ${left}, without it ${right}`];
}

for (const route of ROUTES) {
  test(`${route.name}: every credential has the contract's result; refusals leave no feed row`, async () => {
    const faults: string[] = [];
    for (const credential of credentials) {
      const found = await ask(route, credential).catch((error: unknown) => [String(error)]);
      faults.push(...found.map((fault) => `${credential.what}: ${fault}`));
    }
    assert.deepEqual(faults, []);
    const refusals = new Set(credentials.map((credential) => expectedRefusal(route, credential)));
    assert.ok(
      refusals.has(null) && (route.auth.length === 0 || refusals.has('unauthenticated')),
      'the credentials do not show this route',
    );
  });
}

test('the credentials cover each reason for a refusal', () => {
  const shown = new Set(ROUTES.flatMap((route) => credentials.map((credential) => expectedRefusal(route, credential))));
  assert.deepEqual(
    shown,
    new Set([null, 'unauthenticated', 'auth_kind_not_allowed', 'org_access_denied', 'permission_denied']),
  );
});
