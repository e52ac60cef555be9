// A load generator that costs little compared with its target: a separate process with keep-alive
// connections, each of which sends its next request after the complete response. Reads only status
// and length of a response. Driven by load-client.ts.
import { connect, type Socket } from 'node:net';
import { messageOf } from '@berth/os/errors.ts';

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

const HEAD_END = Buffer.from('\r\n\r\n');

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
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  try {
    await new Promise<void>((resolve, reject) => {
      let sentAt = 0;
      let received: Buffer = Buffer.alloc(0);
      const send = (): void => {
        sentAt = performance.now();
        socket.write(request);
      };
      // A late response delays the next request, whose latency has to show that.
      const sendWhenDue = (): void => {
        const dueAt = sentAt + (everyMs ?? 0);
        setTimeout(
          () => {
            socket.write(request);
            sentAt = dueAt;
          },
          Math.max(0, dueAt - performance.now()),
        );
      };
      socket.once('connect', send);
      socket.once('error', reject);
      socket.once('close', () => reject(new Error('the connection was closed')));
      socket.on('data', (chunk: Buffer) => {
        received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
        const length = wholeLength(received);
        if (length instanceof Error) {
          reject(length);
        } else if (length !== null && received.length >= length) {
          const now = performance.now();
          latenciesMs.push(now - sentAt);
          received = received.subarray(length);
          if (now < endsAt) (everyMs === undefined ? send : sendWhenDue)();
          else resolve();
        }
      });
    });
  } finally {
    end(socket);
  }
}

/** Length in bytes of the first response in the buffer; null while its head is incomplete. */
function wholeLength(received: Buffer): number | null | Error {
  const headEnd = received.indexOf(HEAD_END);
  if (headEnd < 0) return null;
  const head = received.toString('latin1', 0, headEnd);
  if (!head.startsWith('HTTP/1.1 200 ')) return new Error(`an answer was ${received.toString('utf8', 0, 500)}`);
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
  return length === undefined
    ? new Error('an answer has no content-length')
    : headEnd + HEAD_END.length + Number(length);
}

function end(socket: Socket): void {
  socket.removeAllListeners('close');
  socket.destroy();
}
