// The attackers' process: an API key that sends the longest file bodies, and connections without a
// key that send slowly. Holds everything open until the order to stop. Driven by ../hostile.ts.
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { FILE_LIMITS } from '@berth/contract/route/limits.ts';

export interface AttackOrder {
  port: number;
  /** Key and sandbox of the attacker. */
  token: string;
  sandboxId: string;
  /** File bodies of 16 MB; half of them stop a byte short of their end. */
  bodies: number;
  /** Connections without a key. */
  connections: number;
  /** Orgs whose connections write files of 2 MiB, with each character escaped. */
  escaping: { token: string; sandboxId: string; connections: number }[];
}

/** Responses by status, or the word of a failure. */
export type AttackReport = Record<string, number>;

const BODY_BYTES = 16_000_000;
/** Connections opened at once; a listener's queue holds some hundred. */
const BURST = 100;
const BURST_PAUSE_MS = 50;
/** Interval of the bytes of a slow connection. */
const SLOW_BYTE_MS = 5_000;
const CHUNK_BYTES = 1_048_576;

const sockets = new Set<Socket>();
const report: AttackReport = {};
let isOver = false;
const count = (what: string): void => void (report[what] = (report[what] ?? 0) + 1);

process.on('message', (order: AttackOrder | 'stop') => {
  if (order === 'stop') {
    isOver = true;
    for (const socket of sockets) socket.destroy();
    process.send?.(report);
  } else {
    void attack(order);
  }
});

async function attack(order: AttackOrder): Promise<void> {
  const body = bodyOf();
  const head = [
    `PUT /v1/sandboxes/${order.sandboxId}/file HTTP/1.1\r\nhost: x`,
    `authorization: Bearer ${order.token}`,
    `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`,
  ].join('\r\n');
  const file = escapedFile();
  for (const { connections, ...caller } of order.escaping)
    for (let index = 0; index < connections; index += 1) void writeAgainAndAgain(order.port, caller, file);
  for (let opened = 0; opened < Math.max(order.connections, order.bodies); opened += 1) {
    if (opened < order.connections) sendSlowly(order.port, opened);
    if (opened < order.bodies) sendBody(order.port, head, opened % 2 === 0 ? body : body.subarray(0, -1));
    if (opened % BURST === BURST - 1) await delay(BURST_PAUSE_MS);
  }
}

/** A write of a file of the maximal size, with each character of its base64 text escaped. */
function escapedFile(): Buffer {
  const content = Buffer.alloc(FILE_LIMITS.writeBytes).toString('base64');
  const escaped = content.replaceAll('A', '\\u0041').replaceAll('=', '\\u003d');
  return Buffer.from(`{"path":"/tmp/big","encoding":"base64","content":"${escaped}"}`);
}

async function writeAgainAndAgain(
  port: number,
  caller: { token: string; sandboxId: string },
  body: Buffer,
): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  for (let isAttacking = true; isAttacking;) {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const sent = request(
      {
        agent,
        port,
        host: '127.0.0.1',
        method: 'PUT',
        path: `/v1/sandboxes/${caller.sandboxId}/file`,
        headers: { authorization: `Bearer ${caller.token}`, 'content-type': 'application/json' },
      },
      (response) => {
        count(`escaped ${response.statusCode}`);
        response.resume().once('close', () => resolve(true));
      },
    );
    sent.once('socket', (socket: Socket) => sockets.add(socket));
    sent.once('error', (error: NodeJS.ErrnoException) => {
      count(`escaped ${error.code}`);
      resolve(!isOver);
    });
    sent.end(body);
    isAttacking = (await promise) && !isOver;
  }
}

/** A write of ASCII text with each character escaped: the most work for its length. */
function bodyOf(): Buffer {
  const before = '{"path":"/tmp/big","content":"';
  const after = '"}';
  const characters = Math.floor((BODY_BYTES - before.length - after.length) / 6);
  return Buffer.from(before + '\\u0041'.repeat(characters) + after);
}

function open(port: number, what: string): Socket {
  const socket = connect({ port, host: '127.0.0.1' });
  sockets.add(socket);
  let answered = false;
  socket.on('data', (data: Buffer) => {
    if (!answered) count(`${what} ${data.toString('latin1', 9, 12)}`);
    answered = true;
  });
  socket.on('error', () => undefined);
  socket.once('close', () => {
    sockets.delete(socket);
    if (!answered) count(`${what} closed`);
  });
  return socket;
}

function sendBody(port: number, head: string, body: Buffer): void {
  const socket = open(port, 'body');
  socket.write(head);
  let sent = 0;
  const send = (): void => {
    while (sent < body.length && !socket.destroyed) {
      const chunk = body.subarray(sent, sent + CHUNK_BYTES);
      sent += chunk.length;
      if (socket.write(chunk)) continue;
      socket.once('drain', send);
      return;
    }
  };
  send();
}

/** A head, a webhook and a form in turn, of each a part at once and then single bytes. */
function sendSlowly(port: number, index: number): void {
  const socket = open(port, 'slow');
  const parts = [
    'GET /v1/me HTTP/1.1\r\nhost: x\r\nx-filler: ',
    'POST /billing/stripe HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n' +
      `content-length: 262144\r\n\r\n${'a'.repeat(100_000)}`,
    'POST /sign-in HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-www-form-urlencoded\r\n' +
      `content-length: 16384\r\n\r\n${'a'.repeat(16_000)}`,
  ];
  socket.write(parts[index % parts.length] ?? '');
  const timer = setInterval(() => socket.write('a'), SLOW_BYTE_MS);
  socket.once('close', () => clearInterval(timer));
}
