// A model server that streams as the request says, in a process of its own: events of `bytes`
// bytes, one every `everyMs` milliseconds, or as fast as the client takes them. Prints its port.
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';

export interface ModelStream {
  events: number;
  bytes: number;
  /** 0: no pause. */
  everyMs: number;
}

async function stream(response: ServerResponse, { events, bytes, everyMs }: ModelStream): Promise<void> {
  const event = `data: ${'x'.repeat(bytes - 8)}\n\n`;
  const startMs = performance.now();
  for (let sent = 0; sent < events && !response.destroyed; sent += 1) {
    if (!response.write(event)) await once(response, 'drain');
    const aheadMs = startMs + (sent + 1) * everyMs - performance.now();
    if (aheadMs > 0) await delay(aheadMs);
  }
  response.end();
}

const server = createServer((request, response) => {
  void json(request).then((body) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    return stream(response, body as ModelStream);
  });
});
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
