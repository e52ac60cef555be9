// Connections between the host daemon and its guest gateway: each carries call after call, and a
// call never sees a part of another.
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { readFile, writeFile } from '@berth/protocol/calls/files.ts';
import { health } from '@berth/protocol/calls/identity.ts';
import { until } from '../../../os/test/until.ts';
import { guestsBehind } from '../../src/gateway/client.ts';
import type { GuestClient } from '../../src/guest/client.ts';
import { json, ScriptedGuest } from '../vm/scripted-guest.ts';
import { programOf } from './process-facts.ts';
import { startGateway, type TestGateway } from './ways.ts';

const HEALTHY = { ok: true, version: '1', uptimeSeconds: 1 };
const FILE = { query: { path: '/code/file' } };
const MIB = 1_048_576;

describe('connections to the guest gateway', () => {
  let started: TestGateway;
  let guest: ScriptedGuest;
  let client: GuestClient;
  let clientOf: (guest: ScriptedGuest) => GuestClient;
  let opened = 0;
  before(async () => {
    started = await startGateway();
  });
  after(() => started.close());
  beforeEach(async () => {
    guest = await ScriptedGuest.start();
    guest.handler = (request, response) => {
      if (request.url === '/health') json(response, 200, HEALTHY);
      else if (request.method === 'PUT') request.resume().once('end', () => json(response, 200, { size: MIB }));
      else response.end(Buffer.alloc(MIB, 'x'));
    };
    opened = 0;
    const guests = guestsBehind({
      connect: (signal) => {
        opened += 1;
        return started.gateway.connect(signal);
      },
    });
    clientOf = ({ endpoint }) => guests.clientOf(endpoint, 'the-secret');
    client = clientOf(guest);
  });
  afterEach(async () => {
    client.close();
    await guest.stop();
  });

  const upload = (): { bytes: number; content: Readable } => ({
    bytes: MIB,
    content: Readable.from([Buffer.alloc(MIB, 'x')], { objectMode: false }),
  });
  const round = async (): Promise<void> => {
    assert.deepEqual(await client.call(health, {}), HEALTHY);
    assert.equal((await text(await client.stream(readFile, FILE))).length, MIB);
    assert.deepEqual(await client.call(writeFile, { ...FILE, upload: upload() }), { size: MIB });
  };

  it('calls, streams and uploads one after the other share one connection', async () => {
    for (let count = 0; count < 5; count += 1) await round();
    assert.equal(opened, 1);
  });

  it('a burst opens connections, of which 32 are kept', async () => {
    const burst = (): Promise<unknown> => Promise.all(Array.from({ length: 40 }, () => client.call(health, {})));
    await burst();
    assert.equal(opened, 40);
    await burst();
    assert.equal(opened, 48);
  });

  it('a guest that accepts an upload before its bytes harms no later call of another', async () => {
    const other = await ScriptedGuest.start();
    const neighbour = clientOf(other);
    other.handler = (_request, response) => json(response, 200, HEALTHY);
    guest.handler = (_request, response) => json(response, 200, { size: MIB });
    try {
      for (let count = 0; count < 20; count += 1) {
        await client.call(writeFile, { ...FILE, upload: upload() }).catch(() => undefined);
        assert.deepEqual(await neighbour.call(health, {}), HEALTHY);
      }
    } finally {
      neighbour.close();
      await other.stop();
    }
  });

  it('a stream that its reader leaves takes its connection along', async () => {
    for (let count = 0; count < 3; count += 1) {
      const stream = await client.stream(readFile, FILE);
      stream.destroy();
      assert.deepEqual(await client.call(health, {}), HEALTHY);
    }
    assert.ok(opened >= 3, `${opened} connections`);
  });

  it('a call after the death of the gateway uses no kept connection', async () => {
    await round();
    const { pid } = started.gateway;
    process.kill(await programOf(pid), 'SIGKILL');
    await until('another gateway serves', () =>
      Promise.resolve(started.gateway.pid === null || started.gateway.pid === pid ? null : true),
    );
    await round();
    assert.equal(opened, 2);
  });
});
