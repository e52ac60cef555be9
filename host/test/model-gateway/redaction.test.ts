// A provider that repeats the model key: the guest never sees it, wherever and however it comes.
import assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';
import { test } from 'node:test';
import { Redaction } from '../../src/model-gateway/redaction.ts';
import {
  accessTo,
  GatewayOfVm,
  KEY,
  messageIn,
  POSTS,
  sharedLimits,
  startProvider,
  startWorld,
} from './model-world.ts';

const MASK = '*'.repeat(KEY.length);

for (const status of [200, 400, 403, 429, 500]) {
  test(`a key repeated in head and body of a ${status} is masked, and every length stays`, async (t) => {
    const body = `key ${KEY}, ${KEY}${KEY} and its beginning ${KEY.slice(0, -1)}`;
    const { vm } = await startWorld(t, (_request, response) => {
      const headers = { 'content-length': body.length, 'request-id': `r-${KEY}`, 'x-ratelimit-key': KEY };
      response.writeHead(status, headers).end(body);
    });
    for (const path of Object.values(POSTS)) {
      const reply = await vm.call(path);
      assert.deepEqual([reply.status, reply.text], [status, body.replaceAll(KEY, MASK)]);
      assert.deepEqual([reply.headers['request-id'], reply.headers['x-ratelimit-key']], [`r-${MASK}`, MASK]);
      assert.equal(reply.headers['content-length'], String(body.length));
    }
  });
}

test('a key that a stream splits at any place is masked', async (t) => {
  const { vm } = await startWorld(t, async (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    // Each write has one byte of the key.
    for (const part of ['data: ', ...KEY.split(''), '\n\n']) {
      await new Promise<void>((resolve) => response.write(part, () => resolve()));
      await new Promise((resolve) => setImmediate(resolve));
    }
    response.end('data: end');
  });
  assert.equal((await vm.call(POSTS.anthropic)).text, `data: ${MASK}\n\ndata: end`);
});

test('every split of a text with keys has the same result, and only a beginning of the key is held', () => {
  const key = 'aabaabaaabaabaab';
  const text = `x${key}${key.slice(0, 7)}${key}aab${key}aa${key.slice(0, 15)}`;
  for (let size = 1; size <= text.length; size += 1) {
    const redaction = new Redaction(key);
    let sent = '';
    for (let at = 0; at < text.length; at += size) {
      sent += String(redaction.chunk(Buffer.from(text.slice(at, at + size))));
      const held = text.slice(sent.length, at + size);
      assert.ok(key.startsWith(held) && held.length < key.length, `${size}: held ${held}`);
    }
    assert.equal(sent + String(redaction.end()), text.replaceAll(key, '*'.repeat(key.length)), `chunks of ${size}`);
  }
});

test('the key escaped for a URL or in base64, alone or within a text, is masked at every split', () => {
  const key = 'sk-ant/api+03=key~??>>0123';
  const before = ['', 'u', 'us', 'user:'];
  const encoded = before.flatMap((start) =>
    (['base64', 'base64url'] as const).map((form) => Buffer.from(`${start}${key}:end`).toString(form)),
  );
  const text = [encodeURIComponent(key), ...encoded].join(' ');
  for (let size = 1; size <= text.length; size += 1) {
    const redaction = new Redaction(key);
    let sent = '';
    for (let at = 0; at < text.length; at += size)
      sent += String(redaction.chunk(Buffer.from(text.slice(at, at + size))));
    sent += String(redaction.end());
    assert.equal(sent.length, text.length);
    const [escaped, ...others] = sent.split(' ');
    assert.match(escaped ?? '', /^\*+$/);
    // The remaining text decodes to neither the key nor a part of it.
    for (const one of others) assert.match(one, /^.{0,8}\*{34}.{0,8}$/, `${size}: ${one}`);
    if (size === 1) assert.equal(new Redaction(key).header(text), sent);
  }
});

test('a short key is no secret: it is not masked where it occurs by chance', async (t) => {
  const provider = await startProvider(t, (_request, response) => void response.end('EMPTY'));
  const vm = await GatewayOfVm.start(t, sharedLimits(), accessTo(provider, 'EMPTY'));
  assert.equal((await vm.call(POSTS.openai)).text, 'EMPTY');
});

test('responses are requested plain, and an encoded one is refused', async (t) => {
  const encodings: unknown[] = [];
  const { vm } = await startWorld(t, (request, response) => {
    encodings.push(request.headers['accept-encoding']);
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(KEY));
  });
  for (const provider of ['openai', 'anthropic'] as const) {
    const reply = await vm.call(POSTS[provider], { headers: { 'accept-encoding': 'gzip, br' } });
    assert.equal(reply.status, 502);
    assert.match(messageIn(provider, reply.text), /encodes a response that must be plain/);
  }
  assert.deepEqual(encodings, ['identity', 'identity']);
});
