// The MCP endpoint over HTTP: admission, credentials, bodies, and the form of errors.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { MCP_BODY_BYTES } from '@berth/contract/mcp/endpoint.ts';
import { MCP_TOOLS } from '@berth/contract/mcp/tools.ts';
import { startApi, type TestApi } from '../world/api.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false, now: () => 0, bounds: { keepAlive: { headersAfter: 500, spaceEvery: 50 } } });
});
after(() => api.close());

interface Posted {
  status: number;
  headers: Headers;
  body: any; // oxlint-disable-line typescript/no-explicit-any
}

interface PostOptions {
  token?: string | null;
  headers?: Record<string, string>;
  query?: string;
}

/** Posts a body as the revision 2025-11-25 does. */
async function post(body: unknown, options: PostOptions = {}): Promise<Posted> {
  const { token = api.token, headers = {}, query = '?toolsets=sandboxes' } = options;
  const response = await fetch(`${api.url}/v1/mcp${query}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) };
}

const listTools = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
const callTool = (name: string, given: object): object => ({
  jsonrpc: '2.0',
  id: 7,
  method: 'tools/call',
  params: { name, arguments: given },
});
const namesOf = ({ body }: Posted): string[] => body.result.tools.map(({ name }: { name: string }) => name);
const remaining = ({ headers }: Posted): number => Number(/r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]);

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
    assert.match(body.error.message, /a list of sandboxes|allowed: toolsets/);
  }
});

test('a credential sees only the tools that it may use', async () => {
  const sandboxTools = MCP_TOOLS.filter(({ toolset }) => toolset === 'sandboxes').map(({ name }) => name);
  const session = await api.makeSession({ role: 'viewer' });
  assert.deepEqual(namesOf(await post(listTools, { token: session.token })), sandboxTools);
  const reader = await api.makeKey({ scopes: ['sandbox.read', 'sandbox.files.read'] });
  const readable = ['list_sandboxes', 'get_sandbox', 'list_files', 'read_file'];
  assert.deepEqual(namesOf(await post(listTools, { token: reader })), readable);
  const viewer = await api.makeKey({ role: 'viewer' });
  assert.ok(!namesOf(await post(listTools, { token: viewer })).includes('destroy_sandbox'));
  assert.deepEqual(namesOf(await post(listTools, { token: await api.makeKey({ scopes: [] }) })), []);

  const { id } = await api.makeSandbox('ready');
  const refused = await post(callTool('destroy_sandbox', { sandbox_id: id }), { token: reader });
  assert.equal(refused.body.error.code, -32_602);
  assert.match(refused.body.error.message, /no tool "destroy_sandbox"/);
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
    ['get_sandbox', { sandbox_id: 7 }, /^sandbox_not_found: /],
    ['get_sandbox', { sandbox_id: id, sandboxId: id }, /unknown argument "sandboxId"; allowed: sandbox_id/],
    ['list_sandboxes', { org_id: api.orgId, limit: 0 }, /: limit must be an integer from 1 to 1000/],
    ['create_preview', { sandbox_id: id, port: '3000' }, /: port must be a number|: port must be an integer/],
    ['create_preview', { sandbox_id: id }, /: port is required/],
    ['write_file', { sandbox_id: id, path: 'x', content: 'y', encoding: 'hex' }, /: encoding must be one of/],
  ];
  for (const [tool, given, words] of cases) {
    const { status, body } = await post(callTool(tool, given));
    assert.equal(status, 200);
    assert.equal(body.result.isError, true, JSON.stringify(body));
    assert.match(body.result.content[0].text, words);
  }
});

test('a command that runs for long gets spaces before its result, and its route the result', async () => {
  const { id } = await api.makeSandbox('ready');
  const result = { exitCode: 3, stdout: 'done\n', stderr: '', truncated: false, timedOut: false };
  const started = Promise.withResolvers<void>();
  const finished = Promise.withResolvers<typeof result>();
  api.front.exec = () => {
    started.resolve();
    return finished.promise;
  };
  const response = await fetch(`${api.url}/v1/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      authorization: `Bearer ${api.token}`,
    },
    body: JSON.stringify(callTool('run_command', { sandbox_id: id, command: 'slow' })),
  });
  // The headers came first: the command is still running.
  assert.equal(response.status, 200);
  await started.promise;
  finished.resolve(result);
  const text = await response.text();
  assert.match(text, /^ +\{/);
  assert.deepEqual(JSON.parse(text).result.structuredContent, result);
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
