// WebSocket client of the API: returns the open socket or the refusal.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { WebSocket } from 'ws';

interface Refusal {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

interface Opened {
  status: 101;
  headers: IncomingHttpHeaders;
  socket: WebSocket;
}

/** `headers` are sent unchanged; `protocols` are the offered subprotocols. */
export async function requestWebSocket(
  url: string,
  headers: Readonly<Record<string, string>>,
  protocols: readonly string[] = [],
): Promise<Opened | Refusal> {
  const socket = new WebSocket(url.replace(/^http/, 'ws'), [...protocols], { headers, perMessageDeflate: false });
  return await new Promise((resolve, reject) => {
    let answered: IncomingHttpHeaders = {};
    socket.once('upgrade', (response) => (answered = response.headers));
    socket.once('open', () => {
      // Keeps early messages until a listener exists.
      socket.pause();
      resolve({ status: 101, headers: answered, socket });
    });
    socket.once('unexpected-response', (_request, response) => {
      readText(response).then(
        (text) => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
        reject,
      );
    });
    socket.on('error', reject);
  });
}

async function readText(response: IncomingMessage): Promise<string> {
  return Buffer.concat((await response.toArray()) as Buffer[]).toString('utf8');
}

/** Messages received over a WebSocket, and its close. */
export class RecordingWebSocket {
  readonly socket: WebSocket;
  /** Parsed text frames. */
  readonly texts: unknown[] = [];
  readonly closed: Promise<{ code: number; reason: string }>;
  #bytes: Buffer[] = [];
  #wake: (() => void) | undefined;

  /** Starts reading. */
  constructor(socket: WebSocket) {
    this.socket = socket;
    this.closed = new Promise((resolve) =>
      socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() })),
    );
    socket.on('error', () => undefined);
    socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) this.#bytes.push(data);
      else this.texts.push(JSON.parse(data.toString('utf8')));
      this.#wake?.();
    });
    void this.closed.then(() => this.#wake?.());
    socket.resume();
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#bytes);
  }

  /** Resolves once `enough` is true; rejects if the WebSocket closes first. */
  async until(enough: (heard: this) => boolean): Promise<void> {
    while (!enough(this)) {
      if (this.socket.readyState === WebSocket.CLOSED) throw new Error('it was closed before');
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
