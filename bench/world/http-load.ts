// A caller of minimal cost: sends requests as bytes over sockets, and counts responses without
// parsing them, so that the host's two cores serve the target.
import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';

/** Address of the requests, and the headers for it. */
export interface LoadTarget {
  address: string;
  port: number;
  /** Header lines, each with its line end. */
  headers: string;
}

/** Seconds for the given requests over the given connections, one in flight on each. */
export async function timeRequests(
  target: LoadTarget,
  path: string,
  requests: number,
  connections: number,
): Promise<number> {
  const request = Buffer.from(`GET ${path} HTTP/1.1\r\n${target.headers}\r\n`);
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(target)));
  let left = requests;
  const startedAt = performance.now();
  try {
    await Promise.all(
      sockets.map(async (socket) => {
        while (left > 0) {
          left -= 1;
          await answered(socket, request);
        }
      }),
    );
    return (performance.now() - startedAt) / 1_000;
  } finally {
    sockets.forEach((socket) => socket.destroy());
  }
}

/** Milliseconds of each round trip of a frame over one WebSocket. */
export async function timeFrames(target: LoadTarget, path: string, frames: number): Promise<number[]> {
  const socket = await open(target);
  try {
    const key = randomBytes(16).toString('base64');
    const handshake =
      `GET ${path} HTTP/1.1\r\n${target.headers}connection: Upgrade\r\n` +
      'upgrade: websocket\r\nsec-websocket-version: 13\r\n' +
      `sec-websocket-key: ${key}\r\n\r\n`;
    const head = await headAfter(socket, handshake);
    if (!head.startsWith('HTTP/1.1 101 ')) throw new Error(`the handshake was answered: ${head.slice(0, 200)}`);
    const body = randomBytes(64);
    // Masked with zeros: a client's frame must be masked.
    const frame = Buffer.concat([Buffer.from([0x82, 0x80 | body.length, 0, 0, 0, 0]), body]);
    const tookMs: number[] = [];
    for (let count = 0; count < frames; count += 1) {
      const startedAt = performance.now();
      await received(socket, frame, 2 + body.length);
      tookMs.push(performance.now() - startedAt);
    }
    return tookMs;
  } finally {
    socket.destroy();
  }
}

/** Head of a response, for the values a browser would keep. */
export async function headOf(target: LoadTarget, path: string): Promise<string> {
  const socket = await open(target);
  try {
    return await headAfter(socket, `GET ${path} HTTP/1.1\r\n${target.headers}\r\n`);
  } finally {
    socket.destroy();
  }
}

export function open({ address, port }: Pick<LoadTarget, 'address' | 'port'>): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port, noDelay: true });
    socket.once('error', reject);
    socket.once('connect', () => resolve(socket));
  });
}

/** Sends one request and reads its complete response, delimited by content-length. */
export async function answered(socket: Socket, request: Buffer): Promise<void> {
  let expected = Number.POSITIVE_INFINITY;
  let bytes = 0;
  let head = '';
  await exchange(socket, request, (chunk) => {
    bytes += chunk.length;
    if (expected === Number.POSITIVE_INFINITY) {
      head += chunk.toString('latin1');
      const end = head.indexOf('\r\n\r\n');
      if (end === -1) return false;
      const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
      if (!head.startsWith('HTTP/1.1 200 ')) throw new Error(`an answer was ${head.slice(0, 500)}`);
      if (length === undefined) throw new Error('an answer has no content-length');
      expected = end + 4 + Number(length);
    }
    return bytes >= expected;
  });
}

async function received(socket: Socket, sent: Buffer, expected: number): Promise<void> {
  let bytes = 0;
  await exchange(socket, sent, (chunk) => (bytes += chunk.length) >= expected);
}

async function headAfter(socket: Socket, sent: string): Promise<string> {
  let text = '';
  await exchange(socket, Buffer.from(sent), (chunk) => (text += chunk.toString('latin1')).includes('\r\n\r\n'));
  return text;
}

/** Sends, and resolves once `enough` accepts the received data. */
function exchange(socket: Socket, sent: Buffer, enough: (chunk: Buffer) => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void): void => {
      socket.off('data', onData);
      socket.off('close', onClose);
      act();
    };
    const onData = (chunk: Buffer): void => {
      try {
        if (enough(chunk)) settle(resolve);
      } catch (error) {
        settle(() => reject(error instanceof Error ? error : new Error(String(error))));
      }
    };
    const onClose = (): void =>
      settle(() => reject(new Error('the connection was closed before the end of an answer')));
    socket.on('data', onData);
    socket.on('close', onClose);
    socket.write(sent);
  });
}
