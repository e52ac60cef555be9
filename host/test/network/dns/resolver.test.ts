import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import type { Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import fc from 'fast-check';
import { RCODE, rcodeOf } from '../../../src/network/dns/message.ts';
import type { NameServer } from '../../../src/network/dns/upstream-query.ts';
import { RESOLVER_PORT } from '../../../src/network/slots/firewall.ts';
import { RESOLVER_LIMITS, Resolver } from '../../../src/network/dns/resolver.ts';
import { Upstreams } from '../../../src/network/dns/upstreams.ts';
import { LARGE_NAME, LARGE_RECORDS, answerOf, nameOf, question } from './dns-zone.ts';
import { enterPrivateHost } from '../../vm/private-host.ts';

enterPrivateHost();

// Everything on loopback: guests query 127.0.2.n, name servers are 127.0.1.n.
const DEADLINE_MS = 180_000;

type Respond = (query: Buffer, reply: (answer: Buffer) => void, from: { port: number }) => void;

const answering: Respond = (query, reply) => reply(answerOf(query, 'udp'));
const silent: Respond = () => undefined;
const withCode =
  (rcode: number): Respond =>
  (query, reply) => {
    const answer = answerOf(query, 'udp').subarray(0, query.length);
    answer.writeUInt16BE(0x8180 | rcode, 2);
    answer.writeUInt32BE(0, 6);
    reply(answer);
  };

/** A name server with a scripted UDP response. */
async function nameServer(t: TestContext, address: string, respond: Respond): Promise<NameServer> {
  const socket = createSocket('udp4');
  t.after(() => socket.close());
  socket.on('message', (query, from) => respond(query, (answer) => socket.send(answer, from.port, from.address), from));
  socket.bind({ address, port: 0 });
  await once(socket, 'listening');
  return { address, port: socket.address().port };
}

const resolverOf = (servers: NameServer[]) =>
  new Resolver(new Upstreams({ servers }, (error) => assert.fail(String(error))));

let addressesUsed = 0;

/** An address that serves nobody yet. */
function freshAddress(): string {
  addressesUsed += 1;
  return `127.0.2.${addressesUsed}`;
}

/** Serves a guest; resolves with the address to query. */
async function serve(t: TestContext, servers: NameServer[]): Promise<string> {
  const address = freshAddress();
  const guest = await resolverOf(servers).serve(address);
  t.after(() => guest.close());
  return address;
}

async function guestSocket(t: TestContext, address: string): Promise<UdpSocket> {
  const socket = createSocket('udp4');
  t.after(() => socket.close());
  socket.connect(RESOLVER_PORT, address);
  await once(socket, 'connect');
  return socket;
}

async function answerTo(socket: UdpSocket, query: Buffer): Promise<Buffer> {
  socket.send(query);
  const [answer] = (await once(socket, 'message', { signal: AbortSignal.timeout(DEADLINE_MS) })) as [Buffer];
  return answer;
}

async function ask(t: TestContext, servers: NameServer[], name = 'www.internet.test'): Promise<Buffer> {
  return answerTo(await guestSocket(t, await serve(t, servers)), question(0x4242, name));
}

test('the response of the name server reaches the guest under its own id', async (t) => {
  const answer = await ask(t, [await nameServer(t, '127.0.1.1', answering)]);
  assert.deepEqual(answer, answerOf(question(0x4242, 'www.internet.test'), 'udp'));
});

test('a query to a name server has a random id and port and is otherwise as the guest sent it', async (t) => {
  const seen: { id: number; port: number; rest: string }[] = [];
  const server = await nameServer(t, '127.0.1.1', (query, reply, from) => {
    seen.push({ id: query.readUInt16BE(0), port: from.port, rest: query.subarray(2).toString('hex') });
    answering(query, reply, from);
  });
  const socket = await guestSocket(t, await serve(t, [server]));
  const edns = Buffer.concat([question(5, 'www.internet.test'), Buffer.from([0, 0, 41, 4, 208, 0, 0, 128, 0, 0, 0])]);
  edns.writeUInt16BE(1, 10);
  for (let asked = 0; asked < 8; asked += 1) await answerTo(socket, edns);
  assert.ok(new Set(seen.map((query) => query.id)).size > 4);
  assert.ok(new Set(seen.map((query) => query.port)).size > 4);
  assert.deepEqual([...new Set(seen.map((query) => query.rest))], [edns.subarray(2).toString('hex')]);
});

test('a silent, absent or failing name server is replaced by the next one', async (t) => {
  const good = await nameServer(t, '127.0.1.2', answering);
  const absent = { address: '127.0.1.9', port: 9 };
  for (const bad of [
    absent,
    await nameServer(t, '127.0.1.1', silent),
    await nameServer(t, '127.0.1.1', withCode(RCODE.refused)),
  ])
    assert.equal(rcodeOf(await ask(t, [bad, good])), 0);
});

test('no response returns a failure to the guest; a refusal is passed on if it is the only one', async (t) => {
  assert.equal(rcodeOf(await ask(t, [])), RCODE.serverFailure);
  assert.equal(rcodeOf(await ask(t, [{ address: '127.0.1.9', port: 9 }])), RCODE.serverFailure);
  assert.equal(rcodeOf(await ask(t, [await nameServer(t, '127.0.1.1', silent)])), RCODE.serverFailure);
  assert.equal(rcodeOf(await ask(t, [await nameServer(t, '127.0.1.1', withCode(RCODE.refused))])), RCODE.refused);
});

test('responses that do not match the query are ignored, and the right one still counts', async (t) => {
  const forger = createSocket('udp4');
  t.after(() => forger.close());
  const server = await nameServer(t, '127.0.1.1', (query, reply, from) => {
    const right = answerOf(query, 'udp');
    const wrongId = Buffer.from(right);
    wrongId.writeUInt16BE(right.readUInt16BE(0) ^ 1, 0);
    const wrongName = Buffer.from(right);
    wrongName[13] = 'X'.charCodeAt(0);
    // Correct in everything but the sender's address.
    const poisoned = Buffer.from(right);
    poisoned.fill(66, poisoned.length - 4);
    forger.send(poisoned, from.port, '127.0.0.1', () => {
      for (const answer of [wrongId, wrongName, query, Buffer.alloc(3), right]) reply(answer);
    });
  });
  assert.deepEqual(await ask(t, [server]), answerOf(question(0x4242, 'www.internet.test'), 'udp'));
});

async function tcpNameServer(t: TestContext): Promise<NameServer> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('data', (frame) => {
      const answer = answerOf(frame.subarray(2), 'tcp');
      const length = Buffer.from([answer.length >> 8, answer.length & 255]);
      // In pieces, as a network delivers it.
      socket.write(length.subarray(0, 1), () =>
        socket.write(Buffer.concat([length.subarray(1), answer.subarray(0, 9)]), () => socket.end(answer.subarray(9))),
      );
    });
  });
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  server.listen(0, '127.0.1.1');
  await once(server, 'listening');
  return { address: '127.0.1.1', port: (server.address() as AddressInfo).port };
}

const frame = (message: Buffer) => Buffer.concat([Buffer.from([message.length >> 8, message.length & 255]), message]);

/** Sends the bytes over one connection. Resolves with the messages when the resolver closes it. */
async function overTcp(address: string, bytes: Buffer): Promise<Buffer[]> {
  const socket = connect({ host: address, port: RESOLVER_PORT, allowHalfOpen: true });
  socket.setTimeout(DEADLINE_MS, () => socket.destroy(new Error('The resolver kept the connection open')));
  socket.end(bytes);
  const chunks: Buffer[] = [];
  for await (const chunk of socket as AsyncIterable<Buffer>) chunks.push(chunk);
  const received = Buffer.concat(chunks);
  const messages: Buffer[] = [];
  for (let offset = 0; offset < received.length;) {
    const end = offset + 2 + received.readUInt16BE(offset);
    messages.push(received.subarray(offset + 2, end));
    offset = end;
  }
  return messages;
}

test('all TCP queries of a connection are answered in turn, large responses whole', async (t) => {
  const address = await serve(t, [{ address: '127.0.1.9', port: 9 }, await tcpNameServer(t)]);
  const asked = [question(1, 'a.internet.test'), question(2, LARGE_NAME, 16), question(3, 'version.bind', 16, 3)];
  const answers = await overTcp(address, Buffer.concat(asked.map(frame)));
  assert.deepEqual(
    answers.map((answer) => answer.readUInt16BE(0)),
    [1, 2, 3],
  );
  assert.equal(answers[1]?.readUInt16BE(6), LARGE_RECORDS);
  assert.equal(rcodeOf(answers[2] ?? Buffer.alloc(12)), RCODE.refused);
});

test('a connection that announces an oversized query is closed unread', async (t) => {
  const address = await serve(t, [await tcpNameServer(t)]);
  const answers = await overTcp(address, Buffer.concat([Buffer.from([0xff, 0xff]), Buffer.alloc(70_000)])).catch(
    (error: NodeJS.ErrnoException) => {
      // Unread data at the resolver's close resets the connection.
      assert.ok(['ECONNRESET', 'EPIPE'].includes(error.code ?? ''), String(error));
      return [];
    },
  );
  assert.deepEqual(answers, []);
  assert.equal((await overTcp(address, frame(question(1, 'a.internet.test')))).length, 1, 'the next one is served');
});

test('a guest is limited in connections and gets each back on close', async (t) => {
  const address = await serve(t, [await tcpNameServer(t)]);
  const held = await Promise.all(
    Array.from({ length: RESOLVER_LIMITS.connectionsPerGuest }, async () => {
      const socket = connect({ host: address, port: RESOLVER_PORT });
      await once(socket, 'connect');
      socket.write(frame(question(1, 'a.internet.test')));
      await once(socket, 'data', { signal: AbortSignal.timeout(DEADLINE_MS) });
      return socket;
    }),
  );
  const refused = connect({ host: address, port: RESOLVER_PORT });
  refused.on('error', () => refused.destroy());
  await once(refused, 'close', { signal: AbortSignal.timeout(DEADLINE_MS) });
  for (const socket of held) socket.destroy();
  const deadline = AbortSignal.timeout(DEADLINE_MS);
  const answered = async () =>
    (await overTcp(address, frame(question(1, 'a.internet.test'))).catch(() => [])).length === 1;
  while (!(await answered())) deadline.throwIfAborted();
});

test('a guest over its query limit is limited to its share; other guests get all of theirs', async (t) => {
  const resolver = resolverOf([await nameServer(t, '127.0.1.1', answering)]);
  const [greedyAddress, modestAddress] = [freshAddress(), freshAddress()];
  for (const address of [greedyAddress, modestAddress]) {
    const served = await resolver.serve(address);
    t.after(() => served.close());
  }
  const greedy = createSocket('udp4');
  const modest = createSocket('udp4');
  t.after(() => (greedy.close(), modest.close()));
  let answers = 0;
  greedy.on('message', () => (answers += 1));
  const startedAt = performance.now();
  for (let asked = 0; asked < 3_000; asked += 1)
    greedy.send(question(asked, `n${asked}.internet.test`), RESOLVER_PORT, greedyAddress);
  modest.connect(RESOLVER_PORT, modestAddress);
  await once(modest, 'connect');
  for (let asked = 0; asked < 20; asked += 1) await answerTo(modest, question(asked, 'www.internet.test'));
  const seconds = (performance.now() - startedAt) / 1_000;
  assert.ok(
    answers > 0 && answers <= RESOLVER_LIMITS.questionBurst + seconds * RESOLVER_LIMITS.questionsPerSecond,
    `${answers} in ${seconds} s`,
  );
});

test('in-flight queries are limited per guest and end with it', async (t) => {
  let asked = 0;
  const server = await nameServer(t, '127.0.1.1', () => (asked += 1));
  const address = freshAddress();
  const guest = await resolverOf([server]).serve(address);
  const socket = await guestSocket(t, address);
  const { promise: refused, resolve } = Promise.withResolvers<void>();
  for (let id = 0; id < RESOLVER_LIMITS.perGuest + 50; id += 1) socket.send(question(id, `n${id}.internet.test`));
  // A query that needs no name server follows: its response proves that all have been read.
  socket.on('message', (answer) => answer.readUInt16BE(0) === 0xffff && resolve());
  socket.send(question(0xffff, 'version.bind', 16, 3));
  await refused;
  const deadline = AbortSignal.timeout(DEADLINE_MS);
  while (asked < RESOLVER_LIMITS.perGuest) {
    deadline.throwIfAborted();
    await new Promise(setImmediate);
  }
  assert.equal(asked, RESOLVER_LIMITS.perGuest);
  guest.close();
  guest.close();
  const again = await resolverOf([server]).serve(address);
  again.close();
});

test('guests with full shares of unanswered queries do not block the next guest', async (t) => {
  const wanted = question(7, 'www.internet.test');
  const server = await nameServer(t, '127.0.1.1', (query, reply, from) => {
    if (query.subarray(12).equals(wanted.subarray(12))) answering(query, reply, from);
  });
  const resolver = resolverOf([server]);
  const guests = Math.ceil(RESOLVER_LIMITS.inAll / RESOLVER_LIMITS.perGuest) + 2;
  for (let greedy = 0; greedy < guests; greedy += 1) {
    const address = freshAddress();
    const served = await resolver.serve(address);
    t.after(() => served.close());
    const socket = await guestSocket(t, address);
    const allRead = Promise.withResolvers<void>();
    socket.on('message', (answer) => answer.readUInt16BE(0) === 0xffff && allRead.resolve());
    for (let id = 0; id < RESOLVER_LIMITS.perGuest; id += 1) socket.send(question(id, `n${id}.internet.test`));
    socket.send(question(0xffff, 'version.bind', 16, 3));
    await allRead.promise;
  }
  const modest = freshAddress();
  const served = await resolver.serve(modest);
  t.after(() => served.close());
  assert.equal(rcodeOf(await answerTo(await guestSocket(t, modest), wanted)), 0);
});

test('a failed listen on an address is reported and leaves nothing open', async (t) => {
  const address = await serve(t, []);
  await assert.rejects(resolverOf([]).serve(address), /EADDRINUSE/);
});

test('a query from port 0 is dropped, and the next guest gets a response', async (t) => {
  const server = await nameServer(t, '127.0.1.1', answering);
  const socket = await guestSocket(t, await serve(t, [server]));
  const rule = `udp dport ${RESOLVER_PORT} udp sport ${socket.address().port} counter udp sport set 0`;
  execFileSync('nft', ['-f', '-'], {
    input: `table ip portless {\n chain output {\n type filter hook output priority filter;\n ${rule}\n }\n}\n`,
  });
  for (const query of [question(1, 'www.internet.test'), question(2, 'version.bind', 16, 3)]) socket.send(query);
  const passed = (): number =>
    Number(/packets (\d+)/.exec(execFileSync('nft', ['list', 'table', 'ip', 'portless'], { encoding: 'utf8' }))?.[1]);
  const deadline = AbortSignal.timeout(DEADLINE_MS);
  while (passed() < 2) {
    deadline.throwIfAborted();
    await new Promise(setImmediate);
  }
  execFileSync('nft', ['delete', 'table', 'ip', 'portless']);
  // The same listener still serves after both.
  assert.equal(rcodeOf(await answerTo(socket, question(3, 'www.internet.test'))), 0);
});

test('no guest bytes, by UDP or TCP, prevent a response to the next query', async (t) => {
  const server = await nameServer(t, '127.0.1.1', answering);
  const address = await serve(t, [server]);
  const socket = await guestSocket(t, address);
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 600 }).map((array) => Buffer.from(array)),
    fc.tuple(fc.nat(60), fc.nat(255)).map(([offset, value]) => {
      const query = question(1, 'www.internet.test');
      query[offset % query.length] = value;
      return query;
    }),
  );
  await fc.assert(
    fc.asyncProperty(bytes, fc.boolean(), async (message, framed) => {
      if (message.length > 0) socket.send(message);
      const connection = connect({ host: address, port: RESOLVER_PORT });
      connection.on('error', () => connection.destroy());
      await once(connection, 'connect');
      connection.write(framed ? frame(message) : message);
      connection.destroy();
    }),
    { numRuns: 150 },
  );
  const marked = question(0xbeef, 'marked.internet.test');
  const deadline = AbortSignal.timeout(DEADLINE_MS);
  let answer = await answerTo(socket, marked);
  while (nameOf(answer) !== 'marked.internet.test') {
    deadline.throwIfAborted();
    answer = await answerTo(socket, marked);
  }
  assert.equal(rcodeOf(answer), 0);
});
