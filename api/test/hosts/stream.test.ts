// Raw streams into guests, from a server that works, misbehaves or is absent.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { afterEach, beforeEach, test } from 'node:test';
import { HostClient } from '../../src/hosts/client.ts';
import { HostError } from '../../src/hosts/error.ts';

const VM = 'sbx_aaaaaaaaaaaaaaaaaaaaaaaa';
const SWITCHING = 'HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: tcp\r\n\r\n';

let server: http.Server;
let folder: string;
let client: HostClient;
let answer: (request: http.IncomingMessage, socket: Duplex) => void;
const sockets = new Set<Duplex>();

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-stream-'));
  server = http.createServer();
  server.on('upgrade', (request, socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    answer(request, socket);
  });
  server.listen(join(folder, 's'));
  await once(server, 'listening');
  client = new HostClient({ url: `unix:${join(folder, 's')}`, token: 'secret' });
});

afterEach(async () => {
  client.close();
  sockets.forEach((socket) => socket.destroy());
  server.close();
  await once(server, 'close');
  await rm(folder, { recursive: true });
});

const failsWith = (code: string, message = /./) => {
  return (error: unknown): boolean => error instanceof HostError && error.code === code && message.test(error.message);
};

function refusing(status: number, body: string): typeof answer {
  return (_request, socket) =>
    void socket.end(`HTTP/1.1 ${status} No\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`);
}

test('a port opens by an authenticated upgrade, keeps early bytes, and half-closes each way', async () => {
  let seen: unknown;
  answer = (request, socket) => {
    const { authorization, upgrade, connection } = request.headers;
    seen = [request.method, request.url, authorization, upgrade, connection];
    socket.write(`${SWITCHING}first `);
    socket.on('data', (chunk: Buffer) => socket.write(chunk));
    socket.once('end', () => socket.end('. the end'));
  };
  const stream = await client.openPort(VM, 8_080);
  stream.end('echo');
  assert.equal(Buffer.concat((await stream.toArray()) as Buffer[]).toString(), 'first echo. the end');
  assert.deepEqual(seen, ['GET', `/vms/${VM}/ports/8080`, 'Bearer secret', 'tcp', 'Upgrade']);
});

test('a reader that stops applies back-pressure to the writer', async () => {
  answer = (_request, socket) => void socket.write(SWITCHING);
  const stream = await client.openPort(VM, 1);
  const chunk = Buffer.alloc(1_048_576);
  let written = 0;
  while (written < 512 && stream.write(chunk)) written += 1;
  assert.ok(stream.writableNeedDrain && written < 512);
  stream.destroy();
});

for (const code of ['port_refused', 'port_forbidden', 'too_many_streams', 'vm_not_running', 'vm_not_found'] as const) {
  test(`a refusal with ${code} becomes that error`, async () => {
    answer = refusing(409, JSON.stringify({ error: { code, message: 'as it is' } }));
    await assert.rejects(client.openPort(VM, 1), failsWith(code, /^as it is$/));
  });
}

test('a response outside the protocol is invalid_answer', async () => {
  for (const body of ['', '{}', 'no JSON', ' '.repeat(100_000)]) {
    answer = refusing(500, body);
    await assert.rejects(client.openPort(VM, 1), failsWith('invalid_answer', /status 500/));
  }
});

test('a host that hangs up or is absent is host_unreachable', async () => {
  answer = (_request, socket) => void socket.destroy();
  await assert.rejects(client.openPort(VM, 1), failsWith('host_unreachable'));
  const nobody = new HostClient({ url: `unix:${join(folder, 'nobody')}`, token: 'secret' });
  await assert.rejects(nobody.openPort(VM, 1), failsWith('host_unreachable'));
});

test('a silent host is host_timeout, and the connection is closed', async () => {
  const asked = Promise.withResolvers<Duplex>();
  answer = (_request, socket) => asked.resolve(socket.resume());
  const opening = client.openPort(VM, 1, { deadlineMs: 50 });
  const ended = asked.promise.then((socket) => once(socket, 'end'));
  await assert.rejects(opening, failsWith('host_timeout', /within 50 ms/));
  await ended;
});

test("a caller's signal aborts the opening with its reason but not an open stream", async () => {
  const abort = new AbortController();
  answer = () => abort.abort(new Error('enough'));
  await assert.rejects(client.openPort(VM, 1, { signal: abort.signal }), /enough/);
  await assert.rejects(client.openPort(VM, 1, { signal: abort.signal }), /enough/);

  const later = new AbortController();
  answer = (_request, socket) => {
    socket.write(SWITCHING);
    socket.pipe(socket);
  };
  const stream = await client.openPort(VM, 1, { signal: later.signal });
  later.abort(new Error('too late'));
  stream.end('still here');
  assert.equal(Buffer.concat((await stream.toArray()) as Buffer[]).toString(), 'still here');
});
