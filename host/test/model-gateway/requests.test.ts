// Requests that the model gateway forwards: the closed list of requests, their headers, and the
// errors of both providers' forms.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import {
  GatewayOfVm,
  accessTo,
  KEY,
  messageIn,
  POSTS,
  sharedLimits,
  startProvider,
  startWorld,
} from './model-world.ts';

const PROVIDERS = ['openai', 'anthropic'] as const;
/** All that a guest may not decide, and all that may not leave the host. */
const FORGED = {
  authorization: 'Bearer forged',
  'x-api-key': 'forged',
  'api-key': 'forged',
  'proxy-authorization': 'Basic forged',
  cookie: 'session=forged',
  'openai-organization': 'forged',
  'openai-project': 'forged',
  'x-forwarded-for': 'forged',
  'x-forwarded-host': 'forged',
  forwarded: 'for=forged',
  host: 'forged.example',
  'x-http-method-override': 'DELETE',
  te: 'trailers',
  'accept-encoding': 'gzip',
  'accept-language': 'forged',
} as const;

test('both providers get the request with the key, and with headers of the list only', async (t) => {
  const seen: { method?: string; url?: string; headers: IncomingHttpHeaders; body: string }[] = [];
  const { vm, provider: base } = await startWorld(t, async (request, response) => {
    const { method = '', url = '', headers } = request;
    seen.push({ method, url, headers, body: await text(request) });
    response.end('{}');
  });
  const kept = { 'content-type': 'application/json', 'user-agent': 'agent/1', accept: '*/*', 'x-stainless-lang': 'js' };
  for (const provider of PROVIDERS) {
    const { status } = await vm.call(POSTS[provider], { headers: { ...FORGED, ...kept } }, '{"a":1}');
    assert.equal(status, 200);
    const credential = provider === 'openai' ? { authorization: `Bearer ${KEY}` } : { 'x-api-key': KEY };
    assert.deepEqual(seen.pop(), {
      ...{ method: 'POST', url: POSTS[provider].slice(provider.length + 1), body: '{"a":1}' },
      headers: {
        ...{ ...kept, ...credential, 'accept-encoding': 'identity' },
        ...{ 'content-length': '7', host: new URL(base).host, connection: 'keep-alive' },
      },
    });
  }
});

const OPEN = [
  ['POST', '/openai/v1/responses', '/v1/responses'],
  ['POST', '/openai/v1/responses/compact', '/v1/responses/compact'],
  ['GET', '/openai/v1/models?client_version=1.2.3&after=x', '/v1/models?client_version=1.2.3'],
  ['POST', '/anthropic/v1/messages?beta=true', '/v1/messages?beta=true'],
  ['POST', '/anthropic/v1/messages/count_tokens?beta=true&x=1', '/v1/messages/count_tokens?beta=true'],
  ['GET', '/anthropic/v1/models?limit=1000&before_id=a/b', '/v1/models?limit=1000'],
] as const;

test('the requests of the list are forwarded, without other parameters of their query', async (t) => {
  const seen: string[] = [];
  const { vm } = await startWorld(t, (request, response) => {
    seen.push(`${request.method} ${request.url}`);
    response.end();
  });
  for (const [method, path] of OPEN) assert.equal((await vm.call(path, { method })).status, 200, path);
  assert.deepEqual(
    seen,
    OPEN.map(([method, , path]) => `${method} ${path}`),
  );
});

const CLOSED = [
  ['GET', '/openai/v1/responses', 405],
  ['DELETE', '/openai/v1/responses', 405],
  ['GET', '/openai/v1/responses/resp_1', 404],
  ['POST', '/openai/v1/responses/', 404],
  ['GET', '/openai/v1/files', 404],
  ['POST', '/openai/v1/files', 404],
  ['GET', '/openai/v1/organization/admin_api_keys', 404],
  ['POST', '/openai/v1/../v1/responses', 404],
  ['POST', '/openai/v1/%72esponses', 404],
  ['POST', '/openai//v1/responses', 404],
  ['PUT', '/anthropic/v1/messages', 405],
  ['POST', '/anthropic/v1/messages/batches', 404],
  ['GET', '/anthropic/v1/files', 404],
  ['GET', '/anthropic/v1/organizations/api_keys', 404],
  ['POST', '/v1/messages', 404],
  ['POST', '/openai.example/v1/responses', 404],
  ['POST', 'http://example.com/openai/v1/responses', 404],
  ['OPTIONS', '*', 404],
] as const;

test('every other request is refused in the form of the provider and reaches no provider', async (t) => {
  let requests = 0;
  const { vm } = await startWorld(t, (_request, response) => {
    requests += 1;
    response.end();
  });
  for (const [method, path, status] of CLOSED) {
    const reply = await vm.call(path, { method });
    assert.equal(reply.status, status, `${method} ${path}`);
    const form = path.startsWith('/openai/') ? 'openai' : 'anthropic';
    assert.match(messageIn(form, reply.text), /^Berth model gateway: /, path);
  }
  assert.equal(requests, 0);
  assert.equal((await vm.call('/anthropic/', { method: 'HEAD' })).status, 200, 'the probe of an agent');
  assert.equal(requests, 0);
});

test('a response keeps its status, body and rate limits, and loses cookies and the account', async (t) => {
  const { vm } = await startWorld(t, (_request, response) => {
    const listed = { 'content-type': 'a/b', 'retry-after': '7', 'request-id': 'r', 'x-ratelimit-limit-requests': '9' };
    const dropped = { 'set-cookie': 'a=b', 'openai-organization': 'acme', 'anthropic-organization-id': 'acme' };
    response.writeHead(429, { ...listed, ...dropped, server: 'x', 'keep-alive': 'timeout=9' }).end('slow down');
  });
  const { status, headers, text: body } = await vm.call(POSTS.openai);
  assert.deepEqual([status, body], [429, 'slow down']);
  const { date: _date, 'keep-alive': kept, ...rest } = headers;
  assert.notEqual(kept, 'timeout=9');
  assert.deepEqual(rest, {
    ...{ 'content-type': 'a/b', 'retry-after': '7', 'request-id': 'r', 'x-ratelimit-limit-requests': '9' },
    ...{ connection: 'close', 'transfer-encoding': 'chunked' },
  });
});

test('a redirect is not followed, and a refusal of the key does not show the response', async (t) => {
  let status = 302;
  let requests = 0;
  const { vm } = await startWorld(t, (_request, response) => {
    requests += 1;
    response.writeHead(status, { location: '/v1/messages' }).end(`the key ${KEY} is wrong`);
  });
  for (const provider of PROVIDERS) {
    status = 302;
    const redirected = await vm.call(POSTS[provider]);
    assert.equal(redirected.status, 502);
    assert.match(messageIn(provider, redirected.text), /redirects the request/);
    status = 401;
    const refused = await vm.call(POSTS[provider]);
    assert.equal(refused.status, provider === 'openai' ? 400 : 403);
    assert.match(messageIn(provider, refused.text), /refused the project's key/);
    for (const { text: shown, headers } of [redirected, refused])
      assert.ok(!`${shown} ${JSON.stringify(headers)}`.includes(KEY) && headers.location === undefined);
  }
  assert.equal(requests, 4);
});

test('a provider that cannot be reached is a 502 without details of the network', async (t) => {
  const closed = await startProvider(t, () => undefined);
  const vm = await GatewayOfVm.start(t, sharedLimits(), accessTo('http://127.0.0.1:1'));
  const refused = await vm.call(POSTS.anthropic);
  assert.equal(refused.status, 502);
  assert.equal(messageIn('anthropic', refused.text), 'Berth model gateway: the model provider cannot be reached');
  vm.gateway.setAccess(accessTo(closed.replace('127.0.0.1', 'no-such-host.invalid')));
  assert.equal((await vm.call(POSTS.openai)).status, 502);
});

test('a provider that sends no valid status is a 502, and the gateway serves on', async (t) => {
  let status = '';
  const provider = createServer((socket) => {
    socket.on('error', () => undefined).once('data', () => socket.end(`HTTP/1.1 ${status} x\r\n\r\n`));
  }).listen(0, '127.0.0.1');
  await once(provider, 'listening');
  t.after(() => provider.close());
  const endpoint = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
  const vm = await GatewayOfVm.start(t, sharedLimits(), accessTo(endpoint));
  for (status of ['000', '099', '101', '42', '1000']) assert.equal((await vm.call(POSTS.openai)).status, 502, status);
  status = '204';
  assert.equal((await vm.call(POSTS.openai)).status, 204);
});
