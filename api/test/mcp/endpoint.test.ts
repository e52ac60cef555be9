// The MCP endpoint over HTTP: admission, credentials, bodies, and the form of errors.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { MCP_BODY_BYTES } from '@berth/contract/mcp/endpoint.ts';
import { MCP_TOOLS } from '@berth/contract/mcp/tools.ts';
import { ROLE_PERMISSIONS } from '@berth/contract/route/permissions.ts';
import { insertMembership } from '../../src/store/people/identity.ts';
import { makeAgentTokenRow } from '../world/people-rows.ts';
import { ExecRefusal } from '../world/guests/exec-refusal.ts';
import { startApi, type TestApi } from '../world/api.ts';
import { callTool, listTools, namesOf, postMcp, remaining, type Posted, type PostOptions } from './post.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false, now: () => 0, bounds: { keepAlive: { headersAfter: 500, spaceEvery: 50 } } });
});
after(() => api.close());

/** Posts with the sandbox tools offered too. */
const post = (body: unknown, options: PostOptions = {}): Promise<Posted> =>
  postMcp(api, body, { query: '?toolsets=sandboxes', ...options });

test('a request without or with a wrong credential is 401 with WWW-Authenticate', async () => {
  for (const token of [null, 'brt_x']) {
    const { status, headers, body } = await post(listTools, { token });
    assert.deepEqual([status, headers.get('www-authenticate')], [401, 'Bearer']);
    assert.equal(body.error.code, 'unauthenticated');
  }
});

test('GET and DELETE are 405', async () => {
  for (const method of ['GET', 'DELETE']) {
    const { status, headers } = await fetch(`${api.url}/v1/mcp`, { method });
    assert.deepEqual([status, headers.get('allow')], [405, 'POST']);
  }
});

test('a foreign Origin is 403; the own one and none are accepted', async () => {
  const own = new URL((await import('../world/settings.ts')).SETTINGS.publicUrl).origin;
  assert.equal((await post(listTools, { headers: { origin: own } })).status, 200);
  for (const origin of ['https://evil.example', 'null', `${own}.evil.example`, own.replace(/^http/, 'ws')]) {
    const { status, body } = await post(listTools, { headers: { origin } });
    assert.deepEqual([status, body.error.code], [403, 'origin_not_allowed'], origin);
  }
});

test('a call of a tool is one unit of the rate limit', async () => {
  const { id } = await api.makeSandbox('ready');
  const token = await api.makeKey({});
  const first = await post(listTools, { token });
  const second = await post(callTool('get_sandbox', { sandbox_id: id }), { token });
  const third = await post(callTool('get_sandbox', { sandbox_id: id }), { token });
  assert.equal(second.body.result.structuredContent.sandbox.id, id);
  assert.deepEqual([remaining(second), remaining(third)], [remaining(first) - 1, remaining(first) - 2]);
});

test('a batch, a body that is not JSON and one that is too large are refused', async () => {
  assert.deepEqual((await post([listTools, listTools])).body.error.code, 'invalid_request');
  assert.equal((await post('{')).status, 400);
  const long = await post({ ...listTools, params: { x: 'x'.repeat(MCP_BODY_BYTES) } });
  assert.deepEqual([long.status, long.body.error.code], [413, 'payload_too_large']);
  const { status } = await post(listTools, { headers: { 'content-type': 'text/plain' } });
  assert.equal(status, 415);
});

test('a faulty toolset or query is refused with the allowed ones', async () => {
  for (const query of ['?toolsets=', '?toolsets=all', '?toolsets=sandboxes,', '?toolset=sandboxes']) {
    const { status, body } = await post(listTools, { query });
    assert.deepEqual([status, body.error.code], [400, 'invalid_request'], query);
    assert.match(body.error.message, /a list of agent_sessions, sandboxes|allowed: toolsets/);
  }
});

test('the query adds toolsets to the one that is always offered', async () => {
  const offered = async (query: string): Promise<string[]> => namesOf(await post(listTools, { query }));
  const agentTools = MCP_TOOLS.filter(({ toolset }) => toolset === 'agent_sessions').map(({ name }) => name);
  assert.equal(agentTools.length, 8);
  assert.deepEqual(await offered(''), agentTools);
  assert.deepEqual(await offered('?toolsets=agent_sessions'), agentTools);
  const all = MCP_TOOLS.map(({ name }) => name);
  assert.deepEqual(await offered('?toolsets=sandboxes'), all);
  assert.deepEqual(await offered('?toolsets=agent_sessions,sandboxes'), all);
});

test('a credential sees only the tools that it may use', async () => {
  const all = MCP_TOOLS.map(({ name }) => name);
  const seen = async (token: string): Promise<string[]> => namesOf(await post(listTools, { token }));
  const session = await api.makeSession({ role: 'viewer' });
  const reads = MCP_TOOLS.flatMap(({ name, route }) =>
    route.permission !== null && ROLE_PERMISSIONS.viewer.has(route.permission) ? [name] : [],
  );
  assert.ok(reads.includes('get_agent_output') && !reads.includes('send_agent_message'));
  assert.deepEqual(await seen(session.token), reads);
  const granted = await makeAgentTokenRow(api.db, { userId: session.userId, canApprove: true, canWake: true });
  assert.deepEqual(await seen(granted.token), ['list_agent_sessions', 'get_agent_session', 'get_agent_output']);
  const other = await api.makeOrg();
  await insertMembership(api.db, { orgId: other.orgId, userId: session.userId, role: 'member' });
  assert.deepEqual(await seen(session.token), all, 'the role in any org counts');
  assert.deepEqual(await seen((await api.makeSession({ role: null })).token), []);
  const reader = await api.makeKey({ scopes: ['sandbox.read', 'sandbox.files.read'] });
  assert.deepEqual(await seen(reader), [
    'list_sandboxes',
    'get_sandbox',
    'get_sandbox_diagnostics',
    'list_files',
    'read_file',
  ]);
  const viewer = await seen(await api.makeKey({ role: 'viewer' }));
  assert.ok(viewer.includes('get_agent_output'));
  assert.ok(!viewer.includes('destroy_sandbox') && !viewer.includes('send_agent_message'));
  assert.deepEqual(await seen(await api.makeKey({ scopes: [] })), []);

  const { id } = await api.makeSandbox('ready');
  const refused = await post(callTool('destroy_sandbox', { sandbox_id: id }), { token: reader });
  assert.equal(refused.body.error.code, -32_602);
  assert.match(refused.body.error.message, /^cannot use destroy_sandbox: .*permission sandbox\.destroy .*scopes/);
});

test('a tool that is not offered is refused with the reason and the remedy', async () => {
  const { id } = await api.makeSandbox('ready');
  const why = async (token: string, query = '?toolsets=sandboxes', name = 'destroy_sandbox'): Promise<string> =>
    (await post(callTool(name, { sandbox_id: id }), { token, query })).body.error.message;
  assert.match(await why(api.token, '?toolsets=sandboxes', 'fly'), /^there is no tool "fly"; offered here: \w+, /);
  assert.match(await why(api.token, ''), /another toolset: add \?toolsets=sandboxes to the URL/);
  const viewer = await api.makeSession({ role: 'viewer' });
  assert.match(await why(viewer.token), /^cannot use destroy_sandbox: .*your role, viewer, does not have it/);
  assert.match(await why((await api.makeSession({ role: null })).token), /member of no org.*; offered here: none$/);
  const { token } = await makeAgentTokenRow(api.db, { userId: api.userId });
  assert.match(await why(token), /does not accept a personal agent token/);
});

test('a faulty message is an error of its parameters, which names the field in plain text', async () => {
  for (const [method, params, message] of [
    ['initialize', { protocolVersion: 5, capabilities: {} }, /^params\.protocolVersion: [^\n{]+; params\.clientInfo: /],
    ['tools/list', { cursor: 5 }, /^params\.cursor: Invalid input: expected string, received number$/],
    ['tools/call', {}, /^params\.name: /],
    ['tools/call', { name: 'x', arguments: [] }, /^params\.arguments: /],
  ] as const) {
    const { body } = await post({ jsonrpc: '2.0', id: 'one', method, params });
    assert.deepEqual([body.id, body.error.code], ['one', -32_602], JSON.stringify(body));
    assert.match(body.error.message, message);
  }
});

test('an unknown revision of the protocol is refused with the supported ones, which all work', async () => {
  const withRevision = (revision: string, body: object = listTools): Promise<Posted> =>
    post(body, { headers: { 'mcp-protocol-version': revision } });
  let supported: string[] = [];
  for (const revision of ['nonsense', '2099-01-01', '2025-13-01']) {
    const { status, body } = await withRevision(revision);
    assert.deepEqual([status, body.error.code, body.error.data.requested, body.id], [400, -32_022, revision, 1]);
    ({ supported } = body.error.data);
    assert.ok(body.error.message.includes(supported.join(', ')));
  }
  const [newest, ...older] = supported;
  assert.ok(newest !== undefined && older.length >= 4);
  for (const revision of older) assert.equal((await withRevision(revision)).status, 200, revision);
  const key = 'io.modelcontextprotocol/';
  const meta = (revision: string) => ({
    [`${key}protocolVersion`]: revision,
    [`${key}clientInfo`]: { name: 'test', version: '1' },
    [`${key}clientCapabilities`]: {},
  });
  const discover = (revision: string): Promise<Posted> =>
    post(
      { jsonrpc: '2.0', id: 1, method: 'server/discover', params: { _meta: meta(revision) } },
      { headers: { 'mcp-protocol-version': revision, 'mcp-method': 'server/discover' } },
    );
  const found = await discover(newest);
  assert.ok(found.body.result.supportedVersions.includes(newest), JSON.stringify(found.body));
  assert.equal((await discover('2099-01-01')).body.error.code, -32_022);
});

test('a personal agent token sees the agent tools that its grants allow, and may wake', async () => {
  const reading = ['list_agent_sessions', 'get_agent_session', 'get_agent_output'];
  const all = MCP_TOOLS.filter(({ toolset }) => toolset === 'agent_sessions').map(({ name }) => name);
  const grants: [Omit<Parameters<typeof makeAgentTokenRow>[1], 'userId'>, string[]][] = [
    [{ access: 'read_only' }, reading],
    [{ access: 'read_send' }, all.filter((name) => name !== 'answer_agent_prompt')],
    [{ access: 'read_send', canApprove: true, canWake: true }, [...all, 'wake_sandbox']],
  ];
  for (const [granted, expected] of grants) {
    const { token } = await makeAgentTokenRow(api.db, { userId: api.userId, ...granted });
    assert.deepEqual(namesOf(await post(listTools, { token })), expected);
  }
});

test('the access check of the route decides about the org', async () => {
  const { id } = await api.makeSandbox('ready');
  const other = await api.makeOrg();
  const { body } = await post(callTool('get_sandbox', { sandbox_id: id }), { token: other.token });
  assert.equal(body.result.isError, true);
  assert.match(body.result.content[0].text, /^org_access_denied: /);
  assert.equal(body.result._meta.error.code, 'org_access_denied');
});

test('faulty arguments are tool errors that name the argument', async () => {
  const { id } = await api.makeSandbox('ready');
  const cases: [string, object, RegExp][] = [
    ['get_sandbox', {}, /sandbox_id is required/],
    ['get_sandbox', { sandbox_id: 7 }, /^invalid_request: sandbox_id must be a string, not 7/],
    ['get_sandbox', { sandbox_id: id, sandboxId: id }, /unknown argument "sandboxId"; allowed: sandbox_id/],
    ['list_sandboxes', { org_id: api.orgId, limit: 0 }, /: limit must be an integer from 1 to 1000/],
    ['create_preview', { sandbox_id: id, port: '3000' }, /: port must be a number|: port must be an integer/],
    ['create_preview', { sandbox_id: id }, /: port is required/],
    ['write_file', { sandbox_id: id, path: 'x', content: 'y', encoding: 'hex' }, /: encoding must be one of/],
    ['create_sandbox', { org_id: api.orgId, idempotency_key: 'é' }, /: idempotency_key must be printable ASCII/],
  ];
  for (const [tool, given, words] of cases) {
    const { status, body } = await post(callTool(tool, given));
    assert.equal(status, 200);
    assert.equal(body.result.isError, true, JSON.stringify(body));
    assert.match(body.result.content[0].text, words);
  }
  const { body } = await post(callTool('get_sandbox', { sandbox_id: null }));
  assert.equal(body.result._meta.error.field, 'sandbox_id');
});

type ExecResult = Awaited<ReturnType<TestApi['front']['exec']>>;

/** Calls `run_command`, which settles once the headers of the response were received. */
async function runLong(settle: (running: PromiseWithResolvers<ExecResult>) => void): Promise<string> {
  const { id } = await api.makeSandbox('ready');
  const started = Promise.withResolvers<void>();
  const running = Promise.withResolvers<ExecResult>();
  api.front.exec = () => {
    started.resolve();
    return running.promise;
  };
  const response = await fetch(`${api.url}/v1/mcp?toolsets=sandboxes`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      authorization: `Bearer ${api.token}`,
    },
    body: JSON.stringify(callTool('run_command', { sandbox_id: id, command: 'slow' })),
  });
  assert.equal(response.status, 200);
  await started.promise;
  settle(running);
  return await response.text();
}

test('a command that runs for long gets spaces before its result, and its route the result', async () => {
  const result = { exitCode: 3, stdout: 'done\n', stderr: '', truncated: false, timedOut: false };
  const text = await runLong(({ resolve }) => resolve(result));
  assert.match(text, /^ +\{/);
  assert.deepEqual(JSON.parse(text).result.structuredContent, result);
});

test('a command that fails after the headers is a whole response with isError', async () => {
  const text = await runLong(({ reject }) => reject(new ExecRefusal('guest_unreachable', 'no')));
  assert.match(text, /^ +\{/);
  const { isError, content, structuredContent } = JSON.parse(text).result;
  assert.equal(isError, true);
  assert.match(content[0].text, /sandbox_unreachable/);
  assert.equal(structuredContent?.exitCode, undefined);
});

test('an internal error reveals its request id only', async () => {
  const { id } = await api.makeSandbox('ready');
  const failing = new Error('the text of a bug');
  const { callers } = api.context;
  const find = callers.findKey.bind(callers);
  let calls = 0;
  callers.findKey = async (...asked) => {
    calls += 1;
    if (calls === 2) throw failing;
    return await find(...asked);
  };
  try {
    const { body } = await post(callTool('get_sandbox', { sandbox_id: id }));
    assert.match(body.result.content[0].text, /^internal: internal error; the request id req_/);
    assert.ok(!JSON.stringify(body).includes(failing.message));
  } finally {
    callers.findKey = find;
  }
});

test('an Idempotency-Key is an argument', async () => {
  const given = { org_id: api.orgId, agent: 'agent_one', project_id: api.projectId, idempotency_key: 'once' };
  const [one, other] = [await post(callTool('create_sandbox', given)), await post(callTool('create_sandbox', given))];
  const idOf = ({ body }: Posted): string => body.result.structuredContent.sandbox.id;
  assert.equal(idOf(one), idOf(other));
});
