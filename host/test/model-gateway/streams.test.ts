// Streams through the model gateway: as they come, with back-pressure, and ended by either side.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Writable } from 'node:stream';
import { test } from 'node:test';
import { ModelServer } from '../../../e2e/model-servers/server.ts';
import { until } from '../../../os/test/until.ts';
import { makeCertificate } from '../../../api/test/pages/tls-front.ts';
import { accessTo, GatewayOfVm, KEY, messageIn, POSTS, sharedLimits, startWorld } from './model-world.ts';

const CHUNK = Buffer.alloc(65_536, 'x');
/** More than all buffers between two ends. */
const ENDLESS_BYTES = 32 * 1_048_576;

test('both providers stream through the gateway, and the model server sees the key', async (t) => {
  const models = await ModelServer.start();
  t.after(() => models.close());
  const vm = await GatewayOfVm.start(t, sharedLimits(), accessTo(models.url));
  const prompt = 'stream\n@slow 20\n@say done';
  const bodies = {
    openai: { model: 'm', input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: prompt }] }] },
    anthropic: { model: 'm', stream: true, tools: [{}], messages: [{ role: 'user', content: prompt }] },
  };
  for (const provider of ['openai', 'anthropic'] as const) {
    const headers = { 'content-type': 'application/json' };
    const outgoing = vm.open(POSTS[provider], { headers });
    outgoing.end(JSON.stringify(bodies[provider]));
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    let [chunks, text] = [0, ''];
    for await (const chunk of response) [chunks, text] = [chunks + 1, text + String(chunk)];
    assert.match(text, /done[^]*(response\.completed|message_stop)/);
    assert.ok(chunks > 10, `events arrive one by one, not in ${chunks} chunks`);
    assert.equal(response.headers['content-type'], 'text/event-stream');
  }
  assert.deepEqual(
    models.calls.map(({ credential }) => credential),
    [`Bearer ${KEY}`, KEY],
  );
});

test('an event arrives before the next one is sent', async (t) => {
  const model = Promise.withResolvers<ServerResponse>();
  const { vm } = await startWorld(t, (_request, response) => model.resolve(response));
  const outgoing = vm.open(POSTS.anthropic).end('{}');
  const sender = await model.promise;
  sender.writeHead(200).flushHeaders();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  for (const event of ['one', 'two']) {
    sender.write(event);
    assert.equal(String((await once(response, 'data'))[0]), event);
  }
  sender.end();
  await once(response, 'end');
});

test('a guest that does not read makes the provider wait', async (t) => {
  let sent = 0;
  const { vm } = await startWorld(t, async (_request, response) => {
    for (; sent < ENDLESS_BYTES && !response.destroyed; sent += CHUNK.length)
      if (!response.write(CHUNK)) await drained(response);
    response.end();
  });
  const outgoing = vm.open(POSTS.openai).end('{}');
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  const stalled = await settled('the provider waits', () => sent);
  assert.ok(stalled > 0 && stalled < ENDLESS_BYTES / 2, `${stalled} bytes were sent to a guest that does not read`);
  let bytes = 0;
  for await (const chunk of response) bytes += (chunk as Buffer).length;
  assert.equal(bytes, ENDLESS_BYTES);
});

test('a provider that does not read makes the guest wait', async (t) => {
  let received: IncomingMessage | undefined;
  const { vm } = await startWorld(t, (request) => void (received = request.pause()));
  const outgoing = vm.open(POSTS.openai);
  let sent = 0;
  const writing = (async () => {
    for (; sent < ENDLESS_BYTES - CHUNK.length && !outgoing.destroyed; sent += CHUNK.length)
      if (!outgoing.write(CHUNK)) await drained(outgoing);
  })();
  await until('the provider has the request', () => Promise.resolve(received ?? null));
  const stalled = await settled('the guest waits', () => sent);
  assert.ok(stalled < ENDLESS_BYTES / 2, `${stalled} bytes were read for a provider that does not read`);
  outgoing.destroy();
  await writing;
});

test('a guest that leaves ends the request at the provider', async (t) => {
  for (const hasHead of [false, true]) {
    const model = Promise.withResolvers<ServerResponse>();
    const { vm } = await startWorld(t, (_request, response) => {
      if (hasHead) response.write('part');
      model.resolve(response);
    });
    const outgoing = vm.open(POSTS.anthropic).end('{}');
    const sender = await model.promise;
    if (hasHead) await once(outgoing, 'response');
    const closed = once(sender, 'close');
    outgoing.destroy();
    await closed;
  }
});

test('a response that the provider breaks off has no end for the guest', async (t) => {
  const { vm } = await startWorld(t, (_request, response) => {
    response.write('part', () => response.socket?.resetAndDestroy());
  });
  for (const provider of ['openai', 'anthropic'] as const)
    await assert.rejects(vm.call(POSTS[provider]), { code: 'ECONNRESET' });
});

test('an endpoint with TLS is verified: by the given authorities, and by its name', async (t) => {
  const { key, cert } = await makeCertificate();
  const server = createTlsServer({ key, cert }, (_request, response) => void response.end('over TLS'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const trusted = { ...sharedLimits(), ca: [String(cert)] };
  const vm = await GatewayOfVm.start(t, trusted, accessTo(`https://localhost:${port}/base/`));
  assert.equal((await vm.call(POSTS.openai)).text, 'over TLS');
  vm.gateway.setAccess(accessTo(`https://127.0.0.1:${port}`));
  const named = await vm.call(POSTS.openai);
  assert.deepEqual([named.status, messageIn('openai', named.text).includes('cannot be reached')], [502, true]);
  const untrusting = await GatewayOfVm.start(t, sharedLimits(), accessTo(`https://localhost:${port}`));
  assert.equal((await untrusting.call(POSTS.openai)).status, 502);
});

/** Resolves when the stream takes more, or is closed. */
function drained(stream: Writable): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const settle = (): void => {
    stream.off('drain', settle).off('close', settle);
    resolve();
  };
  stream.on('drain', settle).on('close', settle);
  return promise;
}

/** The value once it no longer changes between two polls. */
async function settled(what: string, read: () => number): Promise<number> {
  let last = -1;
  return until(what, async () => {
    const now = read();
    const isSame = now === last && now > 0;
    last = now;
    return isSame ? now : null;
  });
}
