// Host of the attackers' sandboxes: takes every write of a file, and keeps nothing.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { upsertHost } from '@berth/api/store/hosts/hosts.ts';
import type { Database } from '@berth/api/store/database/schema.ts';

interface HostStandIn extends AsyncDisposable {
  id: string;
}

/** Resolves when it listens and has a row. */
export async function startHostStandIn(db: Database): Promise<HostStandIn> {
  const server = createServer((request, response) => {
    let size = 0;
    request.on('data', (chunk: Buffer) => (size += chunk.length));
    request.on('end', () => response.setHeader('content-type', 'application/json').end(JSON.stringify({ size })));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const id = 'host-of-attackers';
  await upsertHost(db, {
    id,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    startId: 'first',
    driver: 'fake',
    accelerator: 'none',
    capacity: { vcpu: 8, memoryMib: 8_192, diskGib: 100 },
    reserved: { vcpu: 0, memoryMib: 0, diskGib: 0 },
  });
  return {
    id,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
