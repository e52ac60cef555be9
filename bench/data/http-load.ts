// A caller that costs as little as one can: requests as bytes over sockets of its own, and answers
// counted rather than parsed, so that the two cores measure what is called.
import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';

/** Where requests go, and what their head says of it. */
export interface LoadTarget {
  address: string;
  port: number;
  /** Lines of the head behind the request line, each with its line end. */
  headers: string;
}

/**
 * Seconds that so many requests take over so many connections, each of which asks again once it is
 * answered.
 */
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

/** Milliseconds of each of so many round trips of a frame over one WebSocket. */
export async function timeFrames(target: LoadTarget, path: string, frames: number): Promise<number[]> {
  const socket = await open(target);
  try {
    const key = randomBytes(16).toString('base64');
    const handshake = `GET ${path} HTTP/1.1\r\n${target.headers}connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${key}\r\n\r\n`;
    const head = await until(socket, Buffer.from(handshake), (text) => text.includes('\r\n\r\n'));
    if (!head.startsWith('HTTP/1.1 101 ')) throw new Error(`the handshake was answered: ${head.slice(0, 200)}`);
    const body = randomBytes(64);
    // Masked with zeros, as a client's frame must be with something.
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

/** The head of an answer, for what a browser would take from it. */
export async function headOf(target: LoadTarget, path: string): Promise<string> {
  const socket = await open(target);
  try {
    return await until(socket, Buffer.from(`GET ${path} HTTP/1.1\r\n${target.headers}\r\n`), (text) =>
      text.includes('\r\n\r\n'),
    );
  } finally {
    socket.destroy();
  }
}

function open({ address, port }: LoadTarget): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port, noDelay: true });
    socket.once('error', reject);
    socket.once('connect', () => resolve(socket));
  });
}

/** One request and the whole of its answer, whose length is said in its head. */
async function answered(socket: Socket, request: Buffer): Promise<void> {
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
      if (!head.startsWith('HTTP/1.1 200 ') || length === undefined) throw new Error(`answered: ${head.slice(0, 300)}`);
      expected = end + 4 + Number(length);
    }
    return bytes >= expected;
  });
}

async function received(socket: Socket, sent: Buffer, expected: number): Promise<void> {
  let bytes = 0;
  await exchange(socket, sent, (chunk) => (bytes += chunk.length) >= expected);
}

async function until(socket: Socket, sent: Buffer, enough: (text: string) => boolean): Promise<string> {
  let text = '';
  await exchange(socket, sent, (chunk) => enough((text += chunk.toString('latin1'))));
  return text;
}

/** Sends, and resolves once what comes back is enough. */
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
