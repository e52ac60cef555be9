// Raw streams to programs of the guest that listen on loopback only.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { test, type TestContext } from 'node:test';
import { freePort } from '../../../protocol/test/free-port.ts';
import { makeIdentity, startDaemon, type TestDaemon } from '../daemon.ts';

const SECRET = 's'.repeat(43);

interface Opened {
  stream: Socket;
  head: Buffer;
}

async function ask(
  daemon: TestDaemon,
  port: string,
  { secret = SECRET, protocol = 'tcp' } = {},
): Promise<Opened | IncomingMessage> {
  const asked = request({
    port: daemon.port,
    path: `/ports/${port}`,
    createConnection: () => connect({ port: daemon.port, host: '127.0.0.1', allowHalfOpen: true }),
    headers: { connection: 'Upgrade', upgrade: protocol, authorization: `Bearer ${secret}` },
  });
  asked.end();
  return new Promise((resolve, reject) => {
    asked.once('upgrade', (response, stream: Duplex, head) => {
      assert.deepEqual([response.statusCode, response.headers.upgrade], [101, 'tcp']);
      resolve({ stream: stream as Socket, head });
    });
    asked.once('response', resolve);
    asked.once('error', reject);
  });
}

async function open(daemon: TestDaemon, port: number): Promise<Opened> {
  const answer = await ask(daemon, String(port));
  assert.ok('stream' in answer, `refused with ${'stream' in answer ? '' : answer.statusCode}`);
  return answer;
}

async function refusal(
  daemon: TestDaemon,
  port: string,
  options?: { secret?: string; protocol?: string },
): Promise<[number, string]> {
  const answer = await ask(daemon, port, options);
  assert.ok(!('stream' in answer));
  const body = JSON.parse(Buffer.concat(await answer.toArray()).toString()) as { error: { message: string } };
  return [answer.statusCode ?? 0, body.error.message];
}

async function secured(t: TestContext): Promise<TestDaemon> {
  const daemon = await startDaemon(t);
  assert.equal((await daemon.call('POST', '/identity', makeIdentity({ secret: SECRET }))).status, 200);
  return daemon;
}

async function program(t: TestContext, host: string, serve: (socket: Socket) => void): Promise<number> {
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined);
    t.after(() => socket.destroy());
    serve(socket);
  });
  // The daemon asks 127.0.0.1 first: no other server may get the port there.
  server.listen(host === '::1' ? await freePort() : 0, host);
  await once(server, 'listening');
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

test('a stream carries bytes both ways, and the end of one direction leaves the other open', async (t) => {
  const daemon = await secured(t);
  const sent = randomBytes(3_000_000);
  // Responds only after it has received everything.
  const port = await program(t, '127.0.0.1', (socket) => {
    const hash = createHash('sha256');
    socket.on('data', (chunk) => hash.update(chunk));
    socket.once('end', () => socket.end(hash.digest('hex')));
  });
  const { stream, head } = await open(daemon, port);
  stream.end(sent);
  const answered = Buffer.concat([head, ...((await stream.toArray()) as Buffer[])]).toString();
  assert.equal(answered, createHash('sha256').update(sent).digest('hex'));
});

test('a program that closes its side first still reads input', async (t) => {
  const daemon = await secured(t);
  const heard = Promise.withResolvers<string>();
  const port = await program(t, '127.0.0.1', (socket) => {
    socket.end('that is all');
    void socket.toArray().then((chunks: Buffer[]) => heard.resolve(Buffer.concat(chunks).toString()));
  });
  const { stream, head } = await open(daemon, port);
  assert.equal(Buffer.concat([head, ...((await stream.toArray()) as Buffer[])]).toString(), 'that is all');
  stream.end('understood');
  assert.equal(await heard.promise, 'understood');
});

test('a program that listens only on ::1 is reached', async (t) => {
  const daemon = await secured(t);
  const port = await program(t, '::1', (socket) => void socket.end('over IPv6'));
  const { stream, head } = await open(daemon, port);
  assert.equal(Buffer.concat([head, ...((await stream.toArray()) as Buffer[])]).toString(), 'over IPv6');
});

test('a caller that disconnects closes its connection to the program', async (t) => {
  const daemon = await secured(t);
  const broke = Promise.withResolvers<void>();
  const port = await program(t, '127.0.0.1', (socket) => {
    socket.once('close', broke.resolve);
    socket.write('hello');
  });
  const { stream } = await open(daemon, port);
  stream.resetAndDestroy();
  await broke.promise;
});

test('a caller that reads nothing blocks the program', async (t) => {
  const daemon = await secured(t);
  const full = Promise.withResolvers<Socket>();
  const chunk = Buffer.alloc(1_048_576);
  let written = 0;
  const port = await program(t, '127.0.0.1', (socket) => {
    const pour = (): void => {
      while (written < 512 && socket.write(chunk)) written += 1;

      full.resolve(socket);
    };
    socket.on('drain', pour);
    pour();
  });
  const { stream } = await open(daemon, port);
  stream.pause();
  const socket = await full.promise;
  assert.ok(socket.writableNeedDrain);
  assert.ok(written < 512, 'it could not write half a gigabyte that nobody reads');
});

test('a closed port is 502, the daemon’s own port 403 and an invalid port 400', async (t) => {
  const daemon = await secured(t);
  const port = await program(t, '127.0.0.1', () => undefined);
  const free = await new Promise<number>((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
  assert.deepEqual(await refusal(daemon, String(free)), [
    502,
    `nothing listens on port ${free} of this machine's loopback`,
  ]);
  assert.deepEqual(await refusal(daemon, String(daemon.port)), [403, "this is the guest daemon's own port"]);
  for (const text of [
    '0',
    '00',
    `0${daemon.port}`,
    '65536',
    '99999',
    '-1',
    '+80',
    '80.0',
    '8e1',
    '0x50',
    'ssh',
    '80%20',
    '%38%30',
  ]) {
    const [status, message] = await refusal(daemon, text);
    assert.equal(status, 400, text);
    assert.match(message, /is no port: a whole number from 1 to 65535/);
  }
  assert.equal((await refusal(daemon, String(port), { protocol: 'websocket' }))[0], 400);
});

test('a stream requires the secret', async (t) => {
  const daemon = await secured(t);
  const port = await program(t, '127.0.0.1', () => assert.fail('nobody may come this far'));
  for (const secret of ['', 'x'.repeat(43), SECRET.slice(1)])
    assert.equal((await refusal(daemon, String(port), { secret }))[0], 401);
});
