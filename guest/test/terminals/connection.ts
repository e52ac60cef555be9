// Connections to terminals and commands of a guest daemon, as its host makes them. For tests.
import assert from 'node:assert/strict';
import { request, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import {
  bytesFrames,
  COMMAND_STREAM,
  controlFrame,
  FrameReader,
  TERMINAL_FRAME,
} from '@berth/protocol/terminal-frames.ts';
import { makeIdentity, startDaemon, until, type TestDaemon } from '../daemon.ts';

export const SECRET = 's'.repeat(43);

export async function secured(t: TestContext, env: Record<string, string> = {}): Promise<TestDaemon> {
  const daemon = await startDaemon(t, env);
  assert.equal((await daemon.call('POST', '/identity', makeIdentity({ secret: SECRET }))).status, 200);
  return daemon;
}

type StreamOrRefusal = Promise<Socket | { status: number; text: string }>;

export async function requestStream(
  daemon: TestDaemon,
  query: string,
  { secret = SECRET, protocol = 'berth-terminal' } = {},
): StreamOrRefusal {
  return await requestUpgrade(daemon, `/terminal${query}`, { secret, protocol });
}

/** The stream, or the response sent instead. */
export async function requestUpgrade(
  daemon: TestDaemon,
  path: string,
  { secret = SECRET, protocol = 'berth-terminal' } = {},
): StreamOrRefusal {
  const asked = request({
    path,
    createConnection: () => connect({ port: daemon.port, host: '127.0.0.1', allowHalfOpen: true }),
    headers: { connection: 'Upgrade', upgrade: protocol, authorization: `Bearer ${secret}` },
  });
  asked.end();
  const answer = await new Promise<Socket | IncomingMessage>((resolve, reject) => {
    asked.once('upgrade', (_response, stream: Socket, head) => {
      stream.on('error', () => undefined);
      stream.unshift(head);
      resolve(stream);
    });
    asked.once('response', resolve);
    asked.once('error', reject);
  });
  if ('destroySoon' in answer) return answer;
  return { status: answer.statusCode ?? 0, text: Buffer.concat(await answer.toArray()).toString() };
}

export async function refusalOf(daemon: TestDaemon, query: string, options?: { secret?: string; protocol?: string }) {
  const answer = await requestStream(daemon, query, options);
  assert.ok('status' in answer, `${query} was not refused`);
  return answer;
}

export async function openStream(daemon: TestDaemon, query: Record<string, string>): Promise<Socket> {
  const answer = await requestStream(daemon, `?${new URLSearchParams(query).toString()}`);
  assert.ok('destroySoon' in answer, JSON.stringify(answer));
  return answer;
}

/** A command without a terminal, and its output so far. */
export class Attached {
  readonly socket: Socket;
  readonly controls: unknown[] = [];
  ended = false;
  closed = false;
  /** Gets each piece of output, which is then not kept. */
  onOutput: ((stream: number, bytes: Buffer) => void) | undefined;
  readonly #outputs = new Map<number, Buffer[]>([
    [COMMAND_STREAM.stdout, []],
    [COMMAND_STREAM.stderr, []],
  ]);

  constructor(socket: Socket) {
    this.socket = socket;
    const reader = new FrameReader((kind, content) => {
      if (kind === TERMINAL_FRAME.control) this.controls.push(JSON.parse(content.toString('utf8')));
      else if (content.length > 0) this.#take(content);
    });
    socket.on('data', (chunk: Buffer) => reader.push(chunk));
    socket.once('close', () => (this.closed = true));
    socket.once('end', () => {
      this.ended = true;
      socket.end();
    });
  }

  static async start(daemon: TestDaemon, command: string): Promise<Attached> {
    return new Attached(await openStream(daemon, { tty: 'false', command }));
  }

  get stdout(): string {
    return Buffer.concat(this.#outputs.get(COMMAND_STREAM.stdout) ?? []).toString();
  }

  get stderr(): string {
    return Buffer.concat(this.#outputs.get(COMMAND_STREAM.stderr) ?? []).toString();
  }

  write(bytes: string | Buffer): boolean {
    return this.socket.write(bytesFrames(Buffer.from(bytes)));
  }

  order(value: unknown): void {
    this.socket.write(controlFrame(value));
  }

  /** The exit, which must be the last frame. */
  async exit(): Promise<unknown> {
    await until('the connection ends', () => this.ended || this.closed);
    assert.equal(this.controls.length, 1, `it said ${JSON.stringify(this.controls)}`);
    return this.controls[0];
  }

  #take(content: Buffer): void {
    assert.equal(this.controls.length, 0, 'nothing comes after the end');
    const output = this.#outputs.get(content[0] ?? 0);
    assert.ok(output, `a frame of the stream ${content[0]}`);
    if (this.onOutput === undefined) output.push(content.subarray(1));
    else this.onOutput(content[0] ?? 0, content.subarray(1));
  }
}
