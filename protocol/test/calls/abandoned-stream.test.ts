// A stream from the API's client through a host daemon to a program in a guest ends with its
// caller, whatever the program does.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { afterEach, beforeEach, test } from 'node:test';
import { SharedCapacity } from '@berth/protocol/shared-capacity.ts';
import { pino } from 'pino';
import { HostClient } from '../../../api/src/hosts/client.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { hostCalls } from '../../../host/src/server/calls.ts';
import { HostTokens } from '../../../host/src/server/host-tokens.ts';
import { HostServer } from '../../../host/src/server/server.ts';
import { LifecycleFixture, SMALL, vmIdOf } from '../../../host/test/vm/lifecycle/lifecycle-fixture.ts';

const VM = { vmId: vmIdOf('a'), orgId: 'org_a' };
const TOKEN = 't'.repeat(43);
const HOST = { hostId: 'hst_x', startId: 'run_x', driver: 'fake', accelerator: 'none', qemuVersion: null } as const;

let host: LifecycleFixture;
let server: HostServer;
let client: HostClient;
let capacity: SharedCapacity;
/** Listens in the guest; never reads, never ends. */
let program: Server;
let accepted: Socket[];
beforeEach(async () => {
  host = await LifecycleFixture.start();
  server = new HostServer({
    calls: hostCalls({
      lifecycle: host.lifecycle,
      pool: { state: () => ({ ready: 0, target: 0 }) },
      host: { ...HOST, templateId: null },
    }),
    streamBounds: { idleMs: 3_600_000 },
    tokens: new HostTokens([TOKEN]),
    log: pino({ level: 'silent' }),
  });
  capacity = new SharedCapacity(8);
  const url = await server.listen({ socket: join(host.root, 'host.sock'), uid: null, gid: null });
  client = new HostClient({ url, token: () => TOKEN, streams: capacity });
  await host.lifecycle.create(VM.vmId, { epoch: 1, spec: SMALL });
  accepted = [];
  program = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
    socket.on('error', () => undefined);
    accepted.push(socket);
  });
  program.listen(0, '127.0.0.1');
  await once(program, 'listening');
});
afterEach(async () => {
  accepted.forEach((socket) => socket.destroy());
  program.close();
  client.close();
  await server.close(AbortSignal.abort());
  await host.stop();
});

for (const [what, bytes] of [
  ['nothing', 0],
  ['more than the program takes', 64 * 1_048_576],
] as const) {
  test(`a caller that sent ${what} and is gone leaves no stream, at a silent program`, async () => {
    const { port } = program.address() as AddressInfo;
    // More streams than a VM may have: the places of earlier ones must become free.
    for (let count = 0; count < 3 * host.streamLimits.perVm; count += 1) {
      const stream = await openOnceFree(port);
      if (bytes > 0) {
        stream.write(Buffer.alloc(bytes));
        await new Promise((resolve) => setImmediate(resolve));
      }
      stream.destroy();
      await once(stream, 'close');
    }
    assert.equal(capacity.taken, 0);
  });
}

async function openOnceFree(port: number): Promise<Duplex> {
  let opened: Duplex | undefined;
  await untilTrue('the host has a free place', async () => {
    opened = await client.openPort(VM, port).catch((error: unknown) => {
      assert.equal((error as { code?: unknown }).code, 'too_many_streams');
      return undefined;
    });
    return opened !== undefined;
  });
  return opened as Duplex;
}
