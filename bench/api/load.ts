// A load generator that costs little compared with its target: a separate process with keep-alive
// connections, each of which sends its next request after the complete response. Reads only status
// and length of a response. Driven by load-client.ts.
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '@berth/os/errors.ts';
import { answered, open } from '../world/http-load.ts';

export interface LoadOrder {
  port: number;
  path: string;
  token: string | null;
  connections: number;
  milliseconds: number;
  /** Time between the requests of a connection; absent: none. Latencies count from the due time. */
  everyMs?: number;
}

export type LoadReport = { answers: number; milliseconds: number; latenciesMs: number[] } | { error: string };

process.on('message', (order: LoadOrder) => {
  run(order).then(
    (report) => process.send?.(report),
    (error: unknown) => process.send?.({ error: messageOf(error) }),
  );
});

/** Sends requests for the ordered time and reports every response. Rejects if one is not 200. */
async function run(order: LoadOrder): Promise<LoadReport> {
  const authorization = order.token === null ? '' : `authorization: Bearer ${order.token}\r\n`;
  const request = Buffer.from(`GET ${order.path} HTTP/1.1\r\nhost: 127.0.0.1:${order.port}\r\n${authorization}\r\n`);
  const latenciesMs: number[] = [];
  const startedAt = performance.now();
  const endsAt = startedAt + order.milliseconds;
  await Promise.all(
    Array.from({ length: order.connections }, () => requestInTurn(order, request, endsAt, latenciesMs)),
  );
  return { answers: latenciesMs.length, milliseconds: performance.now() - startedAt, latenciesMs };
}

async function requestInTurn(
  { port, everyMs }: LoadOrder,
  request: Buffer,
  endsAt: number,
  latenciesMs: number[],
): Promise<void> {
  const socket = await open({ address: '127.0.0.1', port });
  try {
    let dueAt = performance.now();
    for (;;) {
      await answered(socket, request);
      const now = performance.now();
      latenciesMs.push(now - dueAt);
      if (now >= endsAt) return;
      // A late response delays the next request, whose latency has to show that.
      dueAt = everyMs === undefined ? now : dueAt + everyMs;
      if (everyMs !== undefined) await delay(Math.max(0, dueAt - now));
    }
  } finally {
    socket.destroy();
  }
}
