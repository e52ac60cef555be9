// File calls against scripted guests: requests, responses, and limits of hostile guests.
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { listFiles, readFile, writeFile } from '@berth/protocol/calls/files.ts';
import { FILE_LIST_MAX_BYTES, FILE_READ_BYTES } from '@berth/protocol/files.ts';
import type { GuestClient, Guests } from '../../src/guest/client.ts';
import type { HostError } from '../../src/vm/host-error.ts';
import { WAYS } from '../gateway/ways.ts';
import { json, ScriptedGuest } from '../vm/scripted-guest.ts';

const NEVER = new AbortController().signal;
const ODD = '/code/ü\n\'"&=?#%2e+ 🦭';

for (const [way, open] of Object.entries(WAYS)) {
  describe(`file calls of a guest, ${way}`, () => {
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

    const upload = (content: Buffer): { bytes: number; content: Readable } => ({
      bytes: content.length,
      content: Readable.from([content], { objectMode: false }),
    });
    /** Path of the last request to the guest, as the guest parses it. */
    const asked = (): string | null =>
      new URL(guest.requests.at(-1)?.url ?? '', 'http://guest').searchParams.get('path');

    it('sends any path and any bytes unchanged', async () => {
      const bytes = Buffer.from([0, 255, 10, 13, 0xc3]);
      guest.handler = (_request, response) => void response.end(bytes);
      assert.deepEqual(
        Buffer.concat(await (await client.stream(readFile, { query: { path: ODD } }, { signal: NEVER })).toArray()),
        bytes,
      );
      assert.deepEqual([guest.requests.at(-1)?.method, asked()], ['GET', ODD]);
      assert.deepEqual(
        Buffer.concat(
          await (await client.stream(listFiles, { query: { path: ODD, depth: 4 } }, { signal: NEVER })).toArray(),
        ),
        bytes,
      );
      assert.match(guest.requests.at(-1)?.url ?? '', /^\/files\?path=.*&depth=4$/);
      assert.equal(asked(), ODD);

      const received: Buffer[] = [];
      guest.handler = (request, response) => {
        assert.equal(request.headers['content-length'], '5');
        request.on('data', (chunk: Buffer) => received.push(chunk));
        request.once('end', () => json(response, 200, { size: 5 }));
      };
      assert.deepEqual(
        await client.call(writeFile, { query: { path: ODD }, upload: upload(bytes) }, { signal: NEVER }),
        {
          size: 5,
        },
      );
      assert.deepEqual([Buffer.concat(received), guest.requests.at(-1)?.method, asked()], [bytes, 'PUT', ODD]);
    });

    it('reports a guest’s refusal, only in the words of the protocol', async () => {
      for (const [error, expected] of [
        [
          { message: '<b>trust me</b>', code: 'file_not_found' },
          { code: 'file_not_found', errno: undefined },
        ],
        [
          { message: 'x', code: 'file_system_error', errno: 'EIO' },
          { code: 'file_system_error', errno: 'EIO' },
        ],
      ] as const) {
        guest.handler = (_request, response) => json(response, 404, { error });
        for (const call of [
          () => client.stream(readFile, { query: { path: '/x' } }, { signal: NEVER }),
          () => client.stream(listFiles, { query: { path: '/x', depth: 1 } }, { signal: NEVER }),
          () => client.call(writeFile, { query: { path: '/x' }, upload: upload(Buffer.from('x')) }, { signal: NEVER }),
        ]) {
          await assert.rejects(call(), (failure: HostError) => {
            assert.deepEqual({ code: failure.code, errno: failure.errno }, expected);
            assert.doesNotMatch(failure.message, /trust/);
            return true;
          });
        }
      }
    });

    it('treats a refusal outside the protocol as a broken guest', async () => {
      for (const body of [
        { error: { message: 'x', code: 'sandbox_not_found' } },
        { error: { message: 'x', code: 'file_system_error', errno: 'a\nlie' } },
        { error: { message: 'x' } },
        'text',
      ]) {
        guest.handler = (_request, response) => json(response, 403, body);
        await assert.rejects(client.stream(readFile, { query: { path: '/x' } }, { signal: NEVER }), {
          code: 'guest_unreachable',
        });
      }
    });

    it('cuts off a guest that sends more than a file or listing may have', async () => {
      guest.handler = (_request, response) => {
        const pour = (): void => {
          while (!response.destroyed && response.write('x'.repeat(65_536))) {
            // until the buffer is full
          }
        };
        response.on('drain', pour);
        pour();
      };
      for (const [most, call] of [
        [FILE_READ_BYTES, client.stream(readFile, { query: { path: '/x' } }, { signal: NEVER })],
        [FILE_LIST_MAX_BYTES, client.stream(listFiles, { query: { path: '/x', depth: 5 } }, { signal: NEVER })],
      ] as const) {
        let bytes = 0;
        await assert.rejects(
          async () => {
            for await (const chunk of (await call) as AsyncIterable<Buffer>) bytes += chunk.length;
          },
          { code: 'guest_unreachable', message: /longer than/ },
        );
        assert.ok(bytes <= most);
      }
      await assert.rejects(
        client.call(writeFile, { query: { path: '/x' }, upload: upload(Buffer.from('x')) }, { signal: NEVER }),
        {
          code: 'guest_unreachable',
          message: /longer than/,
        },
      );
    });

    it('rejects a write response with another size or another shape', async () => {
      for (const answer of [{ size: 4 }, { size: -1 }, {}, 'ok']) {
        guest.handler = (request, response) => {
          request.resume();
          json(response, 200, answer);
        };
        await assert.rejects(
          client.call(writeFile, { query: { path: '/x' }, upload: upload(Buffer.from('12345')) }, { signal: NEVER }),
          {
            code: 'guest_unreachable',
          },
        );
      }
    });

    it('leaves the content to the caller when the guest disconnects in the middle of it', async () => {
      const content = new Readable({ read() {} });
      content.push('first');
      guest.handler = (request) => void request.once('data', () => request.socket.destroy());
      await assert.rejects(
        client.call(writeFile, { query: { path: '/x' }, upload: { bytes: 10, content } }, { signal: NEVER }),
        { code: 'guest_unreachable' },
      );
      assert.equal(content.destroyed, false);
    });

    it('ends the call of a caller that leaves', async () => {
      const [begun, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      guest.handler = (_request, response) => {
        response.once('close', closed.resolve);
        begun.resolve();
      };
      const caller = new AbortController();
      const reading = client.stream(readFile, { query: { path: '/x' } }, { signal: caller.signal });
      await begun.promise;
      caller.abort(new Error('the caller went away'));
      await assert.rejects(reading, /the caller went away/);
      await closed.promise;
    });
  });
}
