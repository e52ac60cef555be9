// A port for a server that a test starts later. The kernel gives ports of its own choice (listen on
// port 0, connections to somewhere) out of another range: one of those, free now, may be another
// test's by the time it is listened on.
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the 32,768 where Linux begins with its own choice. */
const PORTS = { first: 20_000, end: 32_768 } as const;

/** A port of 127.0.0.1 that nobody listens on, and that nobody gets by chance. */
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
