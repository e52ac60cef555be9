// A WebSocket server (RFC 6455) on a Unix socket, for a program of this machine: JSON messages in
// text frames, without extensions. Bounds what the program sends, and what waits for it.
import { createServer, type Server, type Socket } from 'node:net';
import { isJson, type Json } from '../agent-process.ts';

/** Longest message of a program, and bytes that may wait for one that does not read. */
const MESSAGE_BYTES = 16 * 1_024 * 1_024;
const QUEUE_BYTES = 64 * 1_024 * 1_024;
const HEAD_BYTES = 16_384;
/** Bytes of a frame's header before its mask: the length takes 0, 2 or 8 more. */
const HEADER_BYTES = 2;
const MASK_BYTES = 4;
const ACCEPT_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const OPCODES = { continuation: 0, text: 1, ping: 9, pong: 10 } as const;

export interface ClientEvents {
  message(message: Json): void;
  closed(): void;
}

/** Listens at the path. `connected` returns what a client's events call. */
export async function listenForPrograms(
  path: string,
  connected: (client: WebSocketClient) => ClientEvents,
): Promise<Server> {
  const server = createServer((socket) => void new WebSocketClient(socket, connected));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  return server;
}

export class WebSocketClient {
  readonly #socket: Socket;
  readonly #connected: (client: WebSocketClient) => ClientEvents;
  #events: ClientEvents | null = null;
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** Bytes that the next head or frame has at least. */
  #needed = 1;
  #parts: Buffer[] = [];
  #partBytes = 0;

  constructor(socket: Socket, connected: (client: WebSocketClient) => ClientEvents) {
    this.#socket = socket;
    this.#connected = connected;
    socket.on('error', () => socket.destroy());
    socket.once('close', () => this.#events?.closed());
    socket.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.#bytes += chunk.length;
      this.#read();
    });
  }

  send(message: Json): void {
    if (this.#socket.writableLength > QUEUE_BYTES) this.close();
    else this.#send(OPCODES.text, Buffer.from(JSON.stringify(message)));
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(): void {
    while (this.#bytes >= this.#needed && !this.#socket.destroyed) {
      const all = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks);
      const used = this.#events === null ? this.#head(all) : this.#frame(all);
      this.#chunks = [all.subarray(used)];
      this.#bytes = all.length - used;
      if (used > 0) this.#needed = HEADER_BYTES;
    }
  }

  /** Reads the request of the upgrade. Returns its bytes; 0 if more are needed. */
  #head(bytes: Buffer): number {
    const end = bytes.indexOf('\r\n\r\n');
    const key = /^sec-websocket-key: *(\S{1,100})\r$/im.exec(bytes.toString('latin1', 0, Math.max(end, 0) + 2))?.[1];
    if (end < 0) this.#needed = bytes.length + 1;
    if (end < 0 && bytes.length <= HEAD_BYTES) return 0;
    if (key === undefined) {
      this.close();
      return bytes.length;
    }
    void this.#accept(key);
    // Until the response is sent.
    this.#socket.pause();
    return end + 4;
  }

  async #accept(key: string): Promise<void> {
    // Not node:crypto, which is slow to load.
    const hash = await crypto.subtle.digest('SHA-1', Buffer.from(key + ACCEPT_SUFFIX));
    this.#socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
        `Sec-WebSocket-Accept: ${Buffer.from(hash).toString('base64')}\r\n\r\n`,
    );
    this.#events = this.#connected(this);
    this.#socket.resume();
  }

  /** Reads a frame. Returns its bytes; 0 if more are needed. Closes at an invalid one. */
  #frame(bytes: Buffer): number {
    const [first = 0, second = 0] = bytes;
    const short = second & 0x7f;
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
    const start = HEADER_BYTES + lengthBytes + MASK_BYTES;
    if ((second & 0x80) === 0) {
      this.close();
      return bytes.length;
    }
    if (bytes.length < start) return this.#wait(start);

    const length =
      lengthBytes === 0 ? short : lengthBytes === 2 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
    if (length + this.#partBytes > MESSAGE_BYTES) {
      this.close();
      return bytes.length;
    }
    if (bytes.length < start + length) return this.#wait(start + length);

    const mask = bytes.subarray(start - MASK_BYTES, start);
    const payload = Buffer.from(bytes.subarray(start, start + length));
    for (let at = 0; at < length; at += 1) payload[at] = (payload[at] ?? 0) ^ (mask[at % MASK_BYTES] ?? 0);
    this.#received(first & 0x0f, (first & 0x80) !== 0, payload);
    return start + length;
  }

  #wait(bytes: number): 0 {
    this.#needed = bytes;
    return 0;
  }

  #received(opcode: number, isLast: boolean, payload: Buffer): void {
    if (opcode === OPCODES.ping) return this.#send(OPCODES.pong, payload);
    if (opcode === OPCODES.pong) return;
    // Also a close: the program ends next.
    if (opcode !== OPCODES.text && opcode !== OPCODES.continuation) return this.close();

    this.#parts.push(payload);
    this.#partBytes += payload.length;
    if (!isLast) return;

    const text = Buffer.concat(this.#parts).toString('utf8');
    this.#parts = [];
    this.#partBytes = 0;
    const message = parsed(text);
    if (message === null) this.close();
    else this.#events?.message(message);
  }

  #send(opcode: number, payload: Buffer): void {
    if (this.#socket.destroyed) return;
    const { length } = payload;
    const header = Buffer.alloc(HEADER_BYTES + (length < 126 ? 0 : length < 65_536 ? 2 : 8));
    header[0] = 0x80 | opcode;
    header[1] = Math.min(length, length < 65_536 ? 126 : 127);
    if (header.length === 4) header.writeUInt16BE(length, 2);
    if (header.length === 10) header.writeBigUInt64BE(BigInt(length), 2);
    this.#socket.write(header);
    this.#socket.write(payload);
  }
}

function parsed(text: string): Json | null {
  try {
    const value: unknown = JSON.parse(text);
    return isJson(value) ? value : null;
  } catch {
    return null;
  }
}
