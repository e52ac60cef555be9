// Limits of the model gateway, and its access: a key that is missing, unknown, changed or removed.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { test, type TestContext } from 'node:test';
import { until } from '../../../os/test/until.ts';
import { accessTo, GatewayOfVm, messageIn, POSTS, sharedLimits, startProvider, startWorld } from './model-world.ts';

/** A provider that holds its responses until they are given back. */
async function startSlow(t: TestContext): Promise<{ url: string; held: ServerResponse[] }> {
  const held: ServerResponse[] = [];
  const url = await startProvider(t, (request, response) => {
    request.resume();
    held.push(response);
  });
  return { url, held };
}

const reaches = (what: string, count: number, list: readonly unknown[]): Promise<true> =>
  until(`${count} ${what}`, async () => (list.length === count ? true : null));

test('a body above the limit is a 413, announced or not, and reaches no provider whole', async (t) => {
  const whole: number[] = [];
  const { vm } = await startWorld(
    t,
    async (request, response) => {
      const chunks = await request.toArray().catch(() => null);
      if (chunks !== null) whole.push(Buffer.concat(chunks as Buffer[]).length);
      response.end();
    },
    { requestBytes: 1_000 },
  );
  const announced = { headers: { 'content-length': 1_001 } };
  const chunked = { headers: { 'transfer-encoding': 'chunked' } };
  for (const provider of ['openai', 'anthropic'] as const) {
    for (const options of [announced, chunked]) {
      const { status, text } = await vm.call(POSTS[provider], options, 'x'.repeat(1_001));
      assert.equal(status, 413);
      assert.match(messageIn(provider, text), /longer than 1000 bytes/);
      assert.equal((await vm.call(POSTS[provider], {}, 'x'.repeat(1_000))).status, 200);
    }
  }
  assert.deepEqual(whole, [1_000, 1_000, 1_000, 1_000]);
});

test('a response above the limit breaks off', async (t) => {
  const { vm } = await startWorld(t, (_request, response) => void response.end('x'.repeat(1_001)), {
    responseBytes: 1_000,
  });
  await assert.rejects(vm.call(POSTS.openai), { code: 'ECONNRESET' });
});

test('a sandbox has a number of requests in flight, and a place again after each', async (t) => {
  const { url, held } = await startSlow(t);
  const vm = await GatewayOfVm.start(t, sharedLimits({ perVm: 2 }), accessTo(url));
  const calls = [vm.call(POSTS.openai), vm.call(POSTS.anthropic)];
  await reaches('requests', 2, held);
  for (const provider of ['openai', 'anthropic'] as const) {
    const { status, headers, text } = await vm.call(POSTS[provider]);
    assert.deepEqual([status, headers['retry-after']], [provider === 'openai' ? 503 : 429, '1']);
    assert.match(messageIn(provider, text), /has 2 requests to models in flight/);
  }
  held.shift()?.end();
  await Promise.race(calls);
  const next = vm.call(POSTS.openai);
  await reaches('requests', 2, held);
  for (const response of held) response.end();
  assert.equal((await next).status, 200);
  await Promise.all(calls);
});

test('an org gets half of the free places of its host, and others the rest', async (t) => {
  const { url, held } = await startSlow(t);
  const shared = sharedLimits({ perHost: 4 });
  const vmOf = (orgId: string): Promise<GatewayOfVm> => GatewayOfVm.start(t, shared, accessTo(url, 'key', orgId));
  const [first, second, other] = [await vmOf('one'), await vmOf('one'), await vmOf('two')];
  const calls = [first.call(POSTS.openai), second.call(POSTS.openai)];
  await reaches('requests', 2, held);
  const refused = await second.call(POSTS.anthropic);
  assert.equal(refused.status, 429);
  assert.match(messageIn('anthropic', refused.text), /the org has its share/);
  calls.push(other.call(POSTS.openai));
  await reaches('requests', 3, held);
  for (const response of held) response.end();
  for (const { status } of await Promise.all(calls)) assert.equal(status, 200);
});

test('rates of a sandbox and of an org are limited; refused requests count', async (t) => {
  const { url } = await startSlow(t);
  const shared = sharedLimits({ vmPerMinute: 0, vmBurst: 2, orgPerMinute: 0, orgBurst: 1 });
  const quick = await startProvider(t, (_request, response) => void response.end());
  const vm = await GatewayOfVm.start(t, shared, accessTo(quick));
  assert.equal((await vm.call(POSTS.openai)).status, 200);
  assert.equal((await vm.call('/openai/v1/files')).status, 404);
  const excess = await vm.call('/anthropic/v1/files');
  assert.deepEqual([excess.status, excess.headers.connection], [429, 'close']);
  assert.match(messageIn('anthropic', excess.text), /the sandbox sends more than 0 requests a minute/);
  const sibling = await GatewayOfVm.start(t, shared, accessTo(url));
  assert.match(messageIn('anthropic', (await sibling.call(POSTS.anthropic)).text), /the org sends more than 0/);
  const other = await GatewayOfVm.start(t, shared, accessTo(quick, 'key', 'other'));
  assert.equal((await other.call(POSTS.openai)).status, 200);
});

test('connections of a sandbox and heads of its requests are limited', async (t) => {
  const { vm } = await startWorld(t, (_request, response) => void response.end(), { connectionsPerVm: 2 });
  const idle = [0, 1].map(() => connect(vm.port, '127.0.0.1'));
  for (const socket of idle) await once(socket, 'connect');
  await assert.rejects(vm.call(POSTS.openai), { code: 'ECONNRESET' });
  const [first] = idle;
  first?.destroy();
  const headers = { accept: 'x'.repeat(40_000) };
  await until('a connection is free', async () => vm.call(POSTS.openai, { headers }).then(replyOf, () => null));
  idle.at(1)?.destroy();
});
const replyOf = ({ status }: { status: number }): true => {
  assert.equal(status, 431);
  return true;
};

test('an exchange without an end is ended: a 504 before its response, a broken stream within it', async (t) => {
  const { url, held } = await startSlow(t);
  const vm = await GatewayOfVm.start(t, sharedLimits({ exchangeMs: 300 }), accessTo(url));
  for (const provider of ['openai', 'anthropic'] as const) {
    const { status, text } = await vm.call(POSTS[provider]);
    assert.equal(status, 504);
    assert.match(messageIn(provider, text), /no complete response within 0.3 s/);
  }
  const started = vm.call(POSTS.openai);
  started.catch(() => undefined);
  await reaches('requests', 3, held);
  held[2]?.write('part');
  await assert.rejects(started, { code: 'ECONNRESET' });
});

test('a request without an end and an endpoint that does not accept are given up', async (t) => {
  const { url, held } = await startSlow(t);
  const vm = await GatewayOfVm.start(t, sharedLimits({ requestMs: 300, connectMs: 300 }), accessTo(url));
  const endless = vm.open(POSTS.openai);
  endless.write('{');
  await once(endless, 'close');
  assert.ok(held.length <= 1);
  // An address of documentation: packets get no response, or are refused at once.
  vm.gateway.setAccess(accessTo('http://192.0.2.1'));
  assert.equal((await vm.call(POSTS.openai)).status, 502);
});

test('requests wait for a key that is not known yet, and end without one', async (t) => {
  const { url, held } = await startSlow(t);
  const vm = await GatewayOfVm.start(t, sharedLimits({ accessMs: 300 }), null);
  const late = await vm.call(POSTS.anthropic);
  assert.equal(late.status, 503);
  assert.match(messageIn('anthropic', late.text), /does not know the key/);
  const patient = await GatewayOfVm.start(t, sharedLimits(), null);
  const waiting = patient.open(POSTS.anthropic).end('{}');
  const arrived = once(waiting, 'response') as Promise<[IncomingMessage]>;
  await once(waiting, 'finish');
  patient.gateway.setAccess(accessTo(url));
  await reaches('requests', 1, held);
  held[0]?.end();
  assert.equal((await arrived)[0].statusCode, 200);
});

test('an agent without a key is refused, the other one is not', async (t) => {
  const { url, held } = await startSlow(t);
  const access = accessTo(url);
  const only = { ...access, agents: { ...access.agents, agent_two: null } };
  const vm = await GatewayOfVm.start(t, sharedLimits(), only);
  const refused = await vm.call(POSTS.anthropic);
  assert.equal(refused.status, 403);
  assert.match(messageIn('anthropic', refused.text), /has no model key for this agent/);
  const call = vm.call(POSTS.openai);
  await reaches('requests', 1, held);
  held[0]?.end();
  assert.equal((await call).status, 200);
});

test('another or a removed key ends the requests that use it at once, and no others', async (t) => {
  const keys: unknown[] = [];
  const held: ServerResponse[] = [];
  const { vm, provider } = await startWorld(t, (request, response) => {
    keys.push(request.headers['x-api-key'] ?? request.headers.authorization);
    held.push(response);
    if (request.url === '/v1/messages') response.write('part');
  });
  const streaming = vm.call(POSTS.anthropic);
  const waiting = vm.call(POSTS.openai);
  for (const call of [streaming, waiting]) call.catch(() => undefined);
  await reaches('requests', 2, held);
  vm.gateway.setAccess(accessTo(provider));
  assert.ok(
    held.every(({ destroyed }) => !destroyed),
    'the same key changes nothing',
  );

  const both = accessTo(provider, 'new');
  vm.gateway.setAccess({ ...both, agents: { ...accessTo(provider).agents, agent_two: both.agents.agent_two } });
  await assert.rejects(streaming, { code: 'ECONNRESET' });
  const next = vm.call(POSTS.anthropic);
  await reaches('requests', 3, held);
  assert.equal(keys[2], 'new');

  vm.gateway.setAccess({ ...both, agents: { agent_one: null, agent_two: null } });
  await assert.rejects(next, { code: 'ECONNRESET' });
  const { status, text } = await waiting;
  assert.equal(status, 503);
  assert.match(messageIn('openai', text), /was changed/);
  assert.equal((await vm.call(POSTS.openai)).status, 400);
});
