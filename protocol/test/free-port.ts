// Selects a port for a server that starts later. The kernel assigns ports (listen on port 0,
// outgoing connections) from another range: a free port of that range may be taken before it is
// used.
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below 32,768, the start of Linux's ephemeral range. */
const PORTS = { first: 20_000, end: 32_768 } as const;

/** Returns an unused port of 127.0.0.1 outside the ephemeral range. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(PORTS.first, PORTS.end);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve, reject) => {
      server.once('listening', () => resolve(true));
      server.once('error', (error: NodeJS.ErrnoException) =>
        error.code === 'EADDRINUSE' ? resolve(false) : reject(error),
      );
      server.listen({ host: '127.0.0.1', port, exclusive: true });
    });
    if (!isFree) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}
