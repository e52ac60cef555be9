import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { after, test } from 'node:test';
import { drainAfterLastResponses } from '../../../src/http/answers/drain.ts';
import { Drains } from '../../../src/http/answers/drains.ts';
import { untilTrue } from '../../../../os/test/until.ts';

test('eight drains run at once, 256 wait, and a further one closes the longest waiting', () => {
  const drains = new Drains();
  const started: number[] = [];
  const closed: number[] = [];
  const leaves = Array.from({ length: 266 }, (_, index) =>
    drains.enter(
      () => started.push(index),
      () => closed.push(index),
    ),
  );
  assert.deepEqual(
    [started, closed],
    [
      [0, 1, 2, 3, 4, 5, 6, 7],
      [8, 9],
    ],
  );

  // Ends of a closed, a waiting and a running one; an end counts once.
  for (const index of [8, 10, 0, 0]) leaves[index]?.();
  assert.deepEqual([started.slice(8), closed], [[11], [8, 9]]);
  leaves.forEach((leave) => leave());
  assert.equal(started.length, 266 - 3);
  drains.enter(
    () => started.push(-1),
    () => assert.fail('a place is free'),
  );
  assert.equal(started.at(-1), -1);
});

test('refused bodies, handshakes and unreadable requests are drained by the same eight turns', async () => {
  const server = createServer((_request, response) => response.writeHead(400, { connection: 'close' }).end());
  const ends: Socket[] = [];
  const answer = (socket: Socket): void => {
    socket.write('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n');
    socket.destroySoon();
  };
  drainAfterLastResponses(server, { silenceMs: 60_000, longestMs: 60_000, bytes: 2 ** 30 });
  server.on('upgrade', (_request, socket) => answer(socket as Socket));
  server.on('clientError', (_error, socket) => answer(socket as Socket));
  server.on('connection', (socket: Socket) => ends.push(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const clients: Socket[] = [];
  after(() => {
    [...clients, ...ends].forEach((socket) => socket.destroy());
    server.close();
  });
  const heads = [
    'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100000000\r\n\r\n',
    'GET / HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n',
    'not HTTP\r\n\r\n',
  ];
  const filler = Buffer.alloc(4 * 1_048_576);
  for (let index = 0; index < 12; index += 1) {
    const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    clients.push(client);
    client.on('error', () => undefined);
    client.resume();
    const answered = once(client, 'end');
    client.write(heads[index % 3] ?? '');
    client.write(filler);
    await answered;
  }
  // The turns are taken by the first eight; the bytes of the others stay unread.
  const drained = (): number => ends.filter(({ bytesRead }) => bytesRead > filler.length).length;
  await untilTrue('eight are drained', () => drained() === 8);
  assert.deepEqual(
    ends.slice(8).map(({ bytesRead }) => bytesRead < 1_048_576),
    [true, true, true, true],
  );
  clients[0]?.destroy();
  await untilTrue('the next is drained', () => drained() === 9);
});

test('requests behind a last response are drained, and never answered', async () => {
  let requests = 0;
  const server = createServer((_request, response) => {
    requests += 1;
    response.writeHead(403, { connection: 'close' }).end();
  });
  drainAfterLastResponses(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  after(() => server.close());
  const { port } = server.address() as { port: number };
  const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  client.resume();
  const answered = once(client, 'end');
  // The end of the connection, as the server sees it.
  const drained = new Promise<number>((resolve) =>
    server.once('connection', (socket: Socket) => socket.once('close', () => resolve(socket.bytesRead))),
  );
  const request = 'DELETE / HTTP/1.1\r\nhost: x\r\n\r\n';
  client.write(request);
  await answered;
  client.end(request.repeat(1_000));
  assert.deepEqual([await drained, requests], [request.length * 1_001, 1]);
});
