// Raw streams into guests, from a server that works, misbehaves or is absent.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { json } from 'node:stream/consumers';
import { afterEach, beforeEach, test } from 'node:test';
import { STREAM_HEADERS } from '@berth/protocol/calls/connections.ts';
import { SharedCapacity } from '@berth/protocol/shared-capacity.ts';
import { HostClient } from '../../src/hosts/client.ts';
import { HostError } from '../../src/hosts/error.ts';
import { untilTrue } from '../../../os/test/until.ts';

const VM = 'sbx_aaaaaaaaaaaaaaaaaaaaaaaa';
const OWNED = { vmId: VM, orgId: 'org_a' };
const SWITCHING = 'HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: tcp\r\n\r\n';

let server: http.Server;
let folder: string;
let client: HostClient;
let answer: (request: http.IncomingMessage, socket: Duplex) => void;
const sockets = new Set<Duplex>();
/** Streams whose close the client reported, by call. */
let closed: string[][];
/** Responses to those reports that are held back. */
let held: http.ServerResponse[] | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-stream-'));
  closed = [];
  held = undefined;
  server = http.createServer((request, response) => {
    assert.deepEqual([request.method, request.url], ['POST', '/streams/close']);
    void json(request).then((body) => {
      closed.push((body as { streams: string[] }).streams);
      if (held === undefined) response.end('{}');
      else held.push(response);
    });
  });
  server.on('upgrade', (request, socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    answer(request, socket);
  });
  server.listen(join(folder, 's'));
  await once(server, 'listening');
  client = new HostClient({ url: `unix:${join(folder, 's')}`, token: () => 'secret', streams: new SharedCapacity(8) });
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
  const stream = await client.openPort(OWNED, 8_080);
  stream.end('echo');
  assert.equal(Buffer.concat((await stream.toArray()) as Buffer[]).toString(), 'first echo. the end');
  assert.deepEqual(seen, ['GET', `/vms/${VM}/ports/8080`, 'Bearer secret', 'tcp', 'Upgrade']);
});

test('a reader that stops applies back-pressure to the writer', async () => {
  answer = (_request, socket) => void socket.write(SWITCHING);
  const stream = await client.openPort(OWNED, 1);
  const chunk = Buffer.alloc(1_048_576);
  let written = 0;
  while (written < 512 && stream.write(chunk)) written += 1;
  assert.ok(stream.writableNeedDrain && written < 512);
  stream.destroy();
});

for (const code of ['port_refused', 'port_forbidden', 'too_many_streams', 'vm_not_running', 'vm_not_found'] as const) {
  test(`a refusal with ${code} becomes that error`, async () => {
    answer = refusing(409, JSON.stringify({ error: { code, message: 'as it is' } }));
    await assert.rejects(client.openPort(OWNED, 1), failsWith(code, /^as it is$/));
  });
}

test('a response outside the protocol is invalid_answer', async () => {
  for (const body of ['', '{}', 'no JSON', ' '.repeat(100_000)]) {
    answer = refusing(500, body);
    await assert.rejects(client.openPort(OWNED, 1), failsWith('invalid_answer', /status 500/));
  }
});

test('a host that hangs up or is absent is host_unreachable', async () => {
  answer = (_request, socket) => void socket.destroy();
  await assert.rejects(client.openPort(OWNED, 1), failsWith('host_unreachable'));
  const nobody = new HostClient({
    url: `unix:${join(folder, 'nobody')}`,
    token: () => 'secret',
    streams: new SharedCapacity(8),
  });
  await assert.rejects(nobody.openPort(OWNED, 1), failsWith('host_unreachable'));
});

test('a silent host is host_timeout, and the connection is closed', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const asked = Promise.withResolvers<Duplex>();
  answer = (_request, socket) => asked.resolve(socket.resume());
  const opening = client.openPort(OWNED, 1, { deadlineMs: 50 });
  const refused = assert.rejects(opening, failsWith('host_timeout', /within 50 ms/));
  const ended = once(await asked.promise, 'end');
  t.mock.timers.tick(50);
  await refused;
  await ended;
});

test("a caller's signal aborts the opening with its reason but not an open stream", async () => {
  const abort = new AbortController();
  answer = () => abort.abort(new Error('enough'));
  await assert.rejects(client.openPort(OWNED, 1, { signal: abort.signal }), /enough/);
  await assert.rejects(client.openPort(OWNED, 1, { signal: abort.signal }), /enough/);

  const later = new AbortController();
  answer = (_request, socket) => {
    socket.write(SWITCHING);
    socket.pipe(socket);
  };
  const stream = await client.openPort(OWNED, 1, { signal: later.signal });
  later.abort(new Error('too late'));
  stream.end('still here');
  assert.equal(Buffer.concat((await stream.toArray()) as Buffer[]).toString(), 'still here');
});

/** Names of opened streams, in order. */
function silentGuest(): string[] {
  const names: string[] = [];
  answer = ({ headers }, socket) => {
    assert.equal(headers[STREAM_HEADERS.org], 'org_a');
    names.push(String(headers[STREAM_HEADERS.stream]));
    socket.pause().write(SWITCHING);
  };
  return names;
}

test('streams closed before their guest ended are reported to the host, many in one call', async () => {
  const names = silentGuest();
  const streams = await Promise.all(Array.from({ length: 4 }, () => client.openPort(OWNED, 1)));
  assert.equal(new Set(names).size, 4);
  held = [];
  streams.forEach((stream) => stream.destroy());
  await untilTrue('the first is reported', () => held?.length === 1);
  held[0]?.end('{}');
  await untilTrue('the others are', () => held?.length === 2);
  assert.deepEqual(closed.flat().toSorted(), names.toSorted());
  held[1]?.end('{}');

  answer = (_request, socket) => void socket.end(SWITCHING);
  const ended = await client.openPort(OWNED, 1);
  ended.resume().end();
  await once(ended, 'close');
  assert.equal(closed.length, 2);
});

test('an org takes at most half of the streams that others leave, and failed ones free their place', async () => {
  const greedy = { vmId: VM, orgId: 'org_greedy' };
  answer = (_request, socket) => void socket.write(SWITCHING);
  const streams = await Promise.all(Array.from({ length: 4 }, () => client.openPort(greedy, 1)));
  const share = /share of this API replica's 8 open connections \(BERTH_API_STREAMS\): half of those that other orgs/;
  await assert.rejects(client.openPort(greedy, 1), failsWith('too_many_streams', share));
  await assert.rejects(client.openTerminal(greedy, { tty: false, command: 'x' }), failsWith('too_many_streams', share));
  for (const orgId of ['org_b', 'org_b', 'org_c', 'org_d']) await client.openPort({ vmId: VM, orgId }, 1);
  const full = /reached its limit of 8 open connections \(BERTH_API_STREAMS\)/;
  await assert.rejects(client.openPort({ vmId: VM, orgId: 'org_e' }, 1), failsWith('too_many_streams', full));

  streams.slice(0, 2).forEach((stream) => stream.destroy());
  await Promise.all(streams.slice(0, 2).map((stream) => once(stream, 'close')));
  answer = refusing(502, JSON.stringify({ error: { code: 'port_refused', message: 'no' } }));
  for (let count = 0; count < 3; count += 1)
    await assert.rejects(client.openPort({ vmId: VM, orgId: 'org_e' }, 1), failsWith('port_refused'));
});
