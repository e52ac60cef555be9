import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { exec } from '@berth/protocol/calls/exec.ts';
import { health } from '@berth/protocol/calls/identity.ts';
import type { GuestClient, Guests } from '../../src/guest/client.ts';
import { HostError } from '../../src/vm/host-error.ts';
import { WAYS } from '../gateway/ways.ts';
import { json, ScriptedGuest } from '../vm/scripted-guest.ts';

const NEVER = new AbortController().signal;
const CALL = { signal: NEVER, deadlineMs: 10_000 };
/** Deadline for a guest that never responds. */
const SHORT = { signal: NEVER, deadlineMs: 400 };

for (const [way, open] of Object.entries(WAYS)) {
  describe(`the client of a guest, ${way}`, () => {
    let guests: Guests;
    let close: () => Promise<void>;
    before(async () => {
      ({ guests, close } = await open());
    });
    after(() => close());

    let guest: ScriptedGuest;
    let client: GuestClient;
    beforeEach(async () => {
      guest = await ScriptedGuest.start();
      client = guests.clientOf(guest.endpoint, 'the-secret');
    });
    afterEach(async () => {
      client.close();
      await guest.stop();
    });

    it('sends its secret and reuses one connection for sequential calls', async () => {
      const sockets = new Set<Socket>();
      guest.handler = (request, response) => {
        sockets.add(request.socket);
        json(response, 200, { ok: true, version: '1', uptimeSeconds: 1 });
      };
      await client.reach(CALL);
      for (let call = 0; call < 3; call += 1)
        assert.deepEqual(await client.call(health, {}, CALL), { ok: true, version: '1', uptimeSeconds: 1 });

      assert.equal(guest.requests[0]?.authorization, 'Bearer the-secret');
      assert.equal(sockets.size, 1);
    });

    it('reaches a guest that starts listening later', async () => {
      const { port } = guest.endpoint;
      await guest.stop();
      const reached = client.reach(CALL);
      await new Promise((resolve) => {
        setTimeout(resolve, 30);
      });
      guest = await ScriptedGuest.start(port);
      await reached;
      assert.equal((await client.call(health, {}, CALL)).ok, true);
    });

    it('gives up on a guest that does not listen, at the deadline or on abort', async () => {
      await guest.stop();
      await assert.rejects(client.reach({ signal: NEVER, deadlineMs: 100 }), {
        code: 'guest_unreachable',
        message: /within 0\.1 s/,
      });
      const abort = new AbortController();
      const reached = client.reach({ signal: abort.signal, deadlineMs: 60_000 });
      abort.abort(new Error('destroyed'));
      await assert.rejects(reached, /destroyed/);
      guest = await ScriptedGuest.start();
    });

    it('reports a guest’s refusal', async () => {
      guest.handler = (_request, response) => json(response, 401, { error: { message: 'wrong secret' } });
      await assert.rejects(client.call(health, {}, CALL), {
        code: 'guest_unreachable',
        status: 401,
        message: /401: wrong secret/,
      });
    });

    it('reports an exec cut off before its result as a broken connection', async () => {
      guest.handler = (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.write(' ', () => response.destroy());
      };
      await assert.rejects(client.call(exec, { body: { command: 'true', timeoutSeconds: 5 } }, CALL), {
        code: 'guest_unreachable',
        message: /closed in the middle of the response/,
      });
    });

    const hostile: [string, (guest: ScriptedGuest) => void, RegExp, typeof CALL?][] = [
      ['never answers', (guest) => (guest.handler = () => {}), /no response within 0\.4 s/, SHORT],
      [
        'sends its answer for ever',
        (guest) =>
          (guest.handler = (_request, response) => {
            const pour = (): void => {
              while (!response.destroyed && response.write('x'.repeat(4_096))) {
                // until the buffer is full
              }
            };
            response.on('drain', pour);
            pour();
          }),
        /longer than 16384 bytes/,
      ],
      [
        'drips its answer',
        (guest) =>
          (guest.handler = (_request, response) => {
            const timer = setInterval(() => response.write(' '), 20);
            response.on('close', () => clearInterval(timer));
          }),
        /no response within 0\.4 s/,
        SHORT,
      ],
      [
        'answers something that is not JSON',
        (guest) => (guest.handler = (_request, response) => void response.end('<html>')),
        /violates its protocol/,
      ],
      [
        'answers with wrong types',
        (guest) => (guest.handler = (_request, response) => json(response, 200, { ok: 'yes' })),
        /violates its protocol/,
      ],
      [
        'sends huge headers',
        (guest) =>
          (guest.handler = (_request, response) =>
            void response.writeHead(200, { 'x-huge': 'x'.repeat(10_000) }).end('{}')),
        /Header/i,
      ],
      [
        'redirects elsewhere',
        (guest) =>
          (guest.handler = (_request, response) =>
            void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end()),
        /the guest returned 302/,
      ],
      [
        'closes the connection',
        (guest) => (guest.handler = (request) => void request.socket.destroy()),
        /hang up|closed|ECONNRESET/,
      ],
      [
        'breaks off in the middle of its answer',
        (guest) =>
          (guest.handler = (request, response) => {
            response.writeHead(200, { 'content-length': 1_000 });
            response.write('{"ok":', () => request.socket.destroy());
          }),
        /aborted|closed|ECONNRESET/,
      ],
    ];
    for (const [what, script, message, options = CALL] of hostile) {
      it(`survives a guest that ${what}`, async () => {
        script(guest);
        await assert.rejects(client.call(health, {}, options), (error: HostError) => {
          assert.ok(error instanceof HostError);
          assert.equal(error.code, 'guest_unreachable');
          assert.match(error.message, message);
          return true;
        });
      });
    }

    for (const status of [200, 503]) {
      it(`closes the connection of a guest whose answer of ${status} never ends`, { timeout: 30_000 }, async () => {
        const closed = Promise.withResolvers<void>();
        guest.handler = (_request, response) => {
          const timer = setInterval(() => response.write('x'.repeat(8_192)), 1);
          response.writeHead(status).once('close', () => {
            clearInterval(timer);
            closed.resolve();
          });
        };
        await assert.rejects(client.call(health, {}, CALL), { code: 'guest_unreachable', message: /longer than/ });
        await closed.promise;
      });
    }

    it('survives a guest that does not speak HTTP or switches protocols', async () => {
      for (const bytes of [
        'SSH-2.0-OpenSSH_9.2\r\n',
        'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
      ]) {
        await withRawGuest(
          guests,
          (socket) => socket.write(bytes),
          async (raw) => {
            await assert.rejects(raw.call(health, {}, CALL), { code: 'guest_unreachable' });
          },
        );
      }
    });

    it('drops a guest that sends 102 for ever at the first one', async () => {
      await withRawGuest(
        guests,
        (socket) => {
          const timer = setInterval(() => socket.write('HTTP/1.1 102 Processing\r\n\r\n'), 5);
          socket.on('close', () => clearInterval(timer));
        },
        async (raw) => {
          await assert.rejects(raw.call(health, {}, CALL), {
            code: 'guest_unreachable',
            message: /sent an interim response/,
          });
        },
      );
    });

    describe('running a command', () => {
      it('forwards the response as it arrives', async () => {
        const go = Promise.withResolvers<void>();
        guest.handler = (_request, response) => {
          response.writeHead(200);
          response.write(' ');
          void go.promise.then(() => response.end('{"exitCode":0}'));
        };
        const output = await client.stream(exec, { body: { command: 'true', timeoutSeconds: 5 } }, { signal: NEVER });
        const [first] = (await once(output, 'data')) as [Buffer];
        assert.equal(first.toString(), ' ');
        go.resolve();
        assert.equal(String(Buffer.concat(await output.toArray())), '{"exitCode":0}');
      });

      it('closes the connection of a caller that left, before and during the response', async () => {
        for (const early of [false, true]) {
          const closed = Promise.withResolvers<void>();
          const asked = Promise.withResolvers<void>();
          guest.handler = (_request, response) => {
            response.once('close', closed.resolve);
            if (early) {
              response.writeHead(200);
              response.flushHeaders();
            }
            asked.resolve();
          };
          const caller = new AbortController();
          const running = client.stream(
            exec,
            { body: { command: 'sleep 60', timeoutSeconds: 60 } },
            { signal: caller.signal },
          );
          await asked.promise;
          if (early) {
            (await running).destroy();
          } else {
            caller.abort(new Error('the caller went away'));
            await assert.rejects(running, /the caller went away/);
          }
          await closed.promise;
        }
      });

      it('cuts off a guest that sends more than the response limit', async () => {
        guest.handler = (_request, response) => {
          response.writeHead(200);
          const pour = (): void => {
            while (!response.destroyed && response.write('x'.repeat(65_536))) {
              // until the buffer is full
            }
          };
          response.on('drain', pour);
          pour();
        };
        const output = await client.stream(exec, { body: { command: 'yes', timeoutSeconds: 5 } }, { signal: NEVER });
        let bytes = 0;
        await assert.rejects(
          async () => {
            for await (const chunk of output as AsyncIterable<Buffer>) bytes += chunk.length;
          },
          { code: 'guest_unreachable', message: /longer than/ },
        );
        assert.ok(bytes <= 800_000, `${bytes} bytes came through`);
      });

      it('fails in-flight calls when the client closes', async () => {
        const asked = Promise.withResolvers<void>();
        guest.handler = (_request, response) => {
          response.writeHead(200);
          response.flushHeaders();
          asked.resolve();
        };
        const output = await client.stream(
          exec,
          { body: { command: 'sleep 60', timeoutSeconds: 60 } },
          { signal: NEVER },
        );
        await asked.promise;
        client.close();
        await assert.rejects(output.toArray(), { code: 'guest_unreachable' });
      });
    });
  });
}

async function withRawGuest(
  guests: Guests,
  talk: (socket: Socket) => void,
  use: (client: GuestClient) => Promise<void>,
): Promise<void> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('data', () => talk(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = guests.clientOf({ address: '127.0.0.1', port: (server.address() as AddressInfo).port });
  try {
    await use(client);
  } finally {
    client.close();
    for (const socket of sockets) socket.destroy();

    server.close();
    await once(server, 'close');
  }
}
