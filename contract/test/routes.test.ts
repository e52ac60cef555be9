// Consistency of route names, paths, permissions and errors.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ERRORS } from '../src/route/errors.ts';
import { MACHINE_SIZES, machineSize, profile, PROFILE_SIZES, SIZE_PROFILES } from '../src/sandboxes/machine-sizes.ts';
import { permission, role, ROLE_PERMISSIONS } from '../src/route/permissions.ts';
import { OPEN_PATHS } from '../src/access/open-paths.ts';
import { ROUTES } from '../src/routes.ts';

test('route names and pairs of method and path are unique', () => {
  assert.equal(new Set(ROUTES.map((route) => route.name)).size, ROUTES.length);
  assert.equal(new Set(ROUTES.map((route) => `${route.method} ${route.path}`)).size, ROUTES.length);
});

test('every route except the health check is below /v1 and requires a token', () => {
  for (const route of ROUTES) {
    if (route.name === 'getHealth') continue;
    assert.match(route.path, /^\/v1\//);
    assert.ok(route.auth.length > 0);
  }
});

test('open paths are unique, and only the OpenAPI document among them is below /v1', () => {
  assert.equal(new Set(OPEN_PATHS.map(({ method, path }) => `${method} ${path}`)).size, OPEN_PATHS.length);
  assert.deepEqual(
    OPEN_PATHS.filter(({ path }) => path.startsWith('/v1')).map(({ path }) => path),
    ['/v1/openapi.json'],
  );
  const open = ROUTES.filter(({ auth }) => auth.length === 0).map(({ method, path }) => `${method} ${path}`);
  for (const name of open) {
    assert.ok(
      OPEN_PATHS.some(({ method, path }) => `${method} ${path}` === name),
      name,
    );
  }
});

/** Routes on an org or one of its resources that need membership alone, or no membership yet. */
const NO_PERMISSION = ['leaveOrg', 'getInvitation', 'acceptInvitation', 'revokeAgentToken', 'endSignIn'];

test('route parameters match the path, and routes on an org or sandbox require a permission', () => {
  for (const route of ROUTES) {
    const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    assert.deepEqual(Object.keys(route.request.params?.shape ?? {}), inPath);
    const isRestricted = inPath.length > 0 || ['listAgentSessions', 'listHosts'].includes(route.name);
    assert.equal(route.permission !== null, isRestricted && !NO_PERMISSION.includes(route.name), route.name);
  }
});

test('routes that the spec denies to API keys accept access tokens only', () => {
  const sessionOnly = ROUTES.filter(({ auth }) => auth.length === 1 && auth[0] === 'session').map(({ name }) => name);
  assert.deepEqual(sessionOnly.toSorted(), [
    'acceptInvitation',
    'claimDomain',
    'createAgentToken',
    'createApiKey',
    'createCheckout',
    'createInvitation',
    'createOrg',
    'deleteAgentCredentials',
    'deleteProject',
    'endOtherSignIns',
    'endSignIn',
    'getAgentCredentials',
    'getInvitation',
    'getSso',
    'leaveOrg',
    'listAgentTokens',
    'listApiKeys',
    'listInvitations',
    'listOrgAgentTokens',
    'listSignIns',
    'putAgentCredentials',
    'removeDomain',
    'removeMember',
    'revokeAgentToken',
    'revokeApiKey',
    'revokeInvitation',
    'revokeOrgAgentToken',
    'updateMe',
    'updateMember',
    'updateOrg',
    'updateProjectUsageGuardrails',
    'updateSso',
    'updateUsageGuardrails',
    'verifyDomain',
  ]);
});

test('personal agent tokens are accepted exactly by the routes of agent sessions', () => {
  assert.deepEqual(
    ROUTES.filter(({ auth }) => auth.includes('agent_token')).map(({ name }) => name),
    [
      'getService',
      'getMe',
      'listMyOrgs',
      'createAgentSession',
      'listAgentSessions',
      'getAgentSession',
      'recoverAgentSession',
      'sendAgentMessage',
      'getAgentOutput',
      'listAgentTurns',
      'answerAgentPrompt',
      'interruptAgentTurn',
      'wakeSandbox',
      'resumeSandbox',
    ],
  );
});

/** As what is typed into a terminal: part of its start. */
const INPUT = ['writeProcessInput', 'resizeProcess'];
/** WebSockets that only read. */
const FOLLOWS = ['followProcessOutput'];

test('reads and input write no activity entry; changes and connections do', () => {
  for (const route of ROUTES) {
    const reads = route.method === 'GET' && (route.websocket !== true || FOLLOWS.includes(route.name));
    assert.equal(route.activity === null, reads || INPUT.includes(route.name), route.name);
  }
});

test('exactly the WebSocket routes use GET with response 101', () => {
  for (const { websocket = false, method, response, request, published } of ROUTES) {
    assert.equal(response.status === 101, websocket);
    if (websocket) assert.deepEqual([method, request.body, published], ['GET', undefined, false]);
  }
});

test('bodies with a complete table in the spec reject unknown fields; others ignore them', () => {
  const refuses = ({ request }: (typeof ROUTES)[number]): boolean =>
    request.body?.safeParse({ surprise: 1 }).error?.issues.some((issue) => issue.code === 'unrecognized_keys') ?? false;
  const withBody = ROUTES.filter(({ request }) => request.body !== undefined);
  const names = (refusing: boolean): string[] =>
    withBody.filter((route) => refuses(route) === refusing).map(({ name }) => name);
  assert.deepEqual(names(true), [
    'updateMe',
    'createAgentToken',
    'createOrg',
    'updateOrg',
    'updateMember',
    'updateSso',
    'claimDomain',
    'createCheckout',
    'createInvitation',
    'createApiKey',
    'putAgentCredentials',
    'sendAgentMessage',
    'answerAgentPrompt',
    'updateUsageGuardrails',
    'updateProjectUsageGuardrails',
    'createSandbox',
    'execInSandbox',
    'startProcess',
    'writeProcessInput',
    'signalProcess',
    'resizeProcess',
    'createPreview',
    'writeFile',
    'moveFile',
    'setFileMode',
    'createFolder',
    'createFileLink',
    'sleepSandbox',
    'stopSandbox',
    'wakeSandbox',
    'resumeSandbox',
    'resizeSandbox',
    'setEgress',
    'updateSandbox',
    'replaceVariables',
    'updateVariables',
    'renewSandbox',
    'sampleMetrics',
    'destroySandbox',
  ]);
  assert.deepEqual(names(false), ['createProject', 'updateProject']);
});

test('every error has a 4xx or 5xx status and a meaning', () => {
  for (const [code, { status, meaning }] of Object.entries(ERRORS)) {
    assert.match(code, /^[a-z]+(_[a-z]+)*$/);
    assert.ok(status >= 400 && status < 600);
    assert.match(meaning, /\.$/);
  }
});

test('each role has the permissions of the next; operator and viewer lack sandbox.preview.share', () => {
  assert.deepEqual(
    role.options.filter((name) => !ROLE_PERMISSIONS[name].has('sandbox.preview.share')),
    ['operator', 'viewer'],
  );
  assert.equal(ROLE_PERMISSIONS.owner.size, permission.options.length);
  for (const [index, name] of role.options.entries()) {
    const next = role.options[index + 1];
    if (next !== undefined) {
      assert.ok(
        [...ROLE_PERMISSIONS[next]].every((permission) => ROLE_PERMISSIONS[name].has(permission)),
        `${next} within ${name}`,
      );
    }
  }
});

test('only owners and admins manage keys, members, billing and caps, and let agents act without approval', () => {
  for (const name of [
    ...(['api_keys.manage', 'org.members.manage', 'billing.manage', 'usage_guardrails.manage'] as const),
    'agent_approvals.disable' as const,
  ]) {
    assert.deepEqual(
      role.options.filter((candidate) => ROLE_PERMISSIONS[candidate].has(name)),
      ['owner', 'admin'],
      name,
    );
  }
});

test('every permission of the spec exists', () => {
  const named = [
    'api_keys.manage',
    'billing.read',
    'sandbox.preview.share',
    'sandbox.destroy',
    'sandbox.stop',
    'sandbox.files.read',
    'sandbox.files.write',
    'agent_session.read',
    'agent_session.send',
    'agent_session.approve',
  ];
  for (const name of named) assert.ok(permission.safeParse(name).success, name);
});

test('every profile has a machine size, every size a profile, and sizes increase', () => {
  for (const name of profile.options) assert.ok(MACHINE_SIZES[PROFILE_SIZES[name]]);
  for (const size of machineSize.options) assert.equal(PROFILE_SIZES[SIZE_PROFILES[size]], size);
  const sizes = machineSize.options.map((size) => MACHINE_SIZES[size]);
  for (const [index, size] of sizes.entries()) {
    const next = sizes[index + 1];
    if (next !== undefined)
      assert.ok(size.vcpu < next.vcpu && size.memoryGb < next.memoryGb && size.diskGb < next.diskGb);
  }
});
