// The demo's client against an API that fails.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { createSandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import { PublicApi } from '../../src/verbs/public-api.ts';

test('a create without a response is repeated with its key, so that its sandbox is known', async () => {
  const keys: unknown[] = [];
  const server = createServer((request, response) => {
    keys.push(request.headers['idempotency-key']);
    if (keys.length === 1) response.destroy();
    else
      response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify(createSandbox.example.answer));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const api = new PublicApi(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, 'token');
    const { id } = await api.createSandbox('org_a', { projectId: 'prj_a', agent: 'agent_one' });
    assert.equal(id, createSandbox.example.answer.sandbox.id);
    assert.equal(keys.length, 2);
    assert.match(String(keys[0]), /^[0-9a-f-]{36}$/);
    assert.equal(keys[1], keys[0]);
  } finally {
    server.close();
  }
});
