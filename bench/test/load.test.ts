// Results that the load generator counts, and those it rejects.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { Load } from '../api/load-client.ts';

async function withServer(answer: RequestListener, run: (port: number) => Promise<void>): Promise<void> {
  const server: Server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  try {
    await run(port);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function withLoad(run: (load: Load) => Promise<void>): Promise<void> {
  const load = new Load();
  try {
    await run(load);
  } finally {
    await load.close();
  }
}

test('every complete response counts once, split or not, with the token and ordered connection count', async () => {
  let answered = 0;
  const sockets = new Set<unknown>();
  const tokens = new Set<string | undefined>();
  const inPieces: RequestListener = (request, response) => {
    answered += 1;
    sockets.add(request.socket);
    tokens.add(request.headers.authorization);
    response.writeHead(200, { 'content-length': '200000' });
    response.write('x'.repeat(100_000));
    setImmediate(() => response.end('y'.repeat(100_000)));
  };
  await withServer(inPieces, (port) =>
    withLoad(async (load) => {
      const { perSecond, latenciesMs } = await load.run({
        port,
        path: '/x',
        token: 'abc',
        connections: 3,
        milliseconds: 100,
      });
      assert.equal(latenciesMs.length, answered);
      assert.ok(latenciesMs.length >= 3 && perSecond > 0 && latenciesMs.every((latency) => latency > 0));
      assert.deepEqual([sockets.size, [...tokens]], [3, ['Bearer abc']]);
    }),
  );
});

for (const [what, answer] of [
  ['is not 200', (_request, response) => response.writeHead(429, { 'content-length': '4' }).end('full')],
  ['has no length', (_request, response) => response.writeHead(200, { 'transfer-encoding': 'chunked' }).end('x')],
  ['breaks off', (request) => request.socket.destroy()],
] as [string, RequestListener][]) {
  test(`a response that ${what} ends the measurement with its reason; the next order still runs`, async () => {
    await withLoad(async (load) => {
      await withServer(answer, async (port) => {
        await assert.rejects(
          load.run({ port, path: '/x', token: null, connections: 2, milliseconds: 50 }),
          /^Error: \/x: .*(429|length|closed|ECONNRESET)/s,
        );
      });
      await withServer(
        (_request, response) => void response.end('fine'),
        async (port) => {
          const { latenciesMs } = await load.run({ port, path: '/', token: null, connections: 1, milliseconds: 20 });
          assert.ok(latenciesMs.length > 0);
        },
      );
    });
  });
}
