// A scripted guest daemon inside the test process: responds properly unless set to be slow, wrong
// or gone. For tests of the host's handling of guests; the real daemon has its own tests.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import {
  guestIdentity,
  guestSize,
  guestWake,
  type GuestIdentity,
  type GuestIdentityResult,
  type GuestSize,
  type GuestSizeResult,
  type GuestWake,
} from '@berth/protocol/calls/identity.ts';
import type { GuestMetrics } from '@berth/protocol/calls/metrics.ts';
import { STREAM_HEAD_BYTES } from '@berth/protocol/guest.ts';
import type { GuestEndpoint } from '../../src/vm/driver.ts';

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

export class ScriptedGuest {
  readonly endpoint: GuestEndpoint;
  /** The last identity received. */
  identity: GuestIdentity | null = null;
  /** The secret in effect; null: calls need none. */
  secret: string | null = null;
  /** Wakes and sizes received. */
  readonly wakes: GuestWake[] = [];
  readonly sizes: GuestSize[] = [];
  /** Changes the values it reads back. */
  readBack: (result: GuestIdentityResult) => unknown = (result) => result;
  /** Changes the values it reads back of a wake or a size; a throw refuses the request. */
  sizeReadBack: (result: GuestSizeResult) => unknown = (result) => result;
  /** Result of a command; default: echoes the request. */
  execResult: (asked: string) => unknown = (stdout) => ({
    exitCode: 0,
    stdout,
    stderr: '',
    truncated: false,
    timedOut: false,
  });
  /** Overrides every response. */
  handler: Handler | null = null;
  /** Handles stream requests; default: hangs up. */
  upgrade: (request: IncomingMessage, socket: Duplex) => void = (_request, socket) => void socket.destroy();
  requests: { method: string; url: string; authorization: string | undefined }[] = [];
  readonly #close: () => Promise<void>;

  private constructor(endpoint: GuestEndpoint, close: () => Promise<void>) {
    this.endpoint = endpoint;
    this.#close = close;
  }

  static async start(port = 0): Promise<ScriptedGuest> {
    const server = createServer({ maxHeaderSize: STREAM_HEAD_BYTES }, (request, response) => {
      void guest.#answer(request, response);
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, '127.0.0.1', resolve);
    });
    const streams = new Set<Duplex>();
    server.on('upgrade', (request, socket) => {
      streams.add(socket);
      socket.on('error', () => undefined);
      guest.upgrade(request, socket);
    });
    const guest: ScriptedGuest = new ScriptedGuest(
      { address: '127.0.0.1', port: (server.address() as AddressInfo).port },
      async () => {
        const closed = new Promise((resolve) => server.close(resolve));
        server.closeAllConnections();
        streams.forEach((socket) => socket.destroy());
        await closed;
      },
    );
    return guest;
  }

  async stop(): Promise<void> {
    await this.#close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests.push({
      method: request.method ?? '',
      url: request.url ?? '',
      authorization: request.headers.authorization,
    });
    if (this.handler !== null) {
      this.handler(request, response);
      return;
    }
    const text = await textOf(request);
    if (this.secret !== null && request.headers.authorization !== `Bearer ${this.secret}`) {
      json(response, 401, { error: { message: 'wrong secret' } });
    } else if (request.url === '/identity') {
      const told = guestIdentity.parse(JSON.parse(text));
      this.identity = told;
      this.secret = told.secret;
      const { hostname, machineId, vcpu, memoryMib, diskGib } = told;
      json(response, 200, this.readBack({ hostname, machineId, clockUnixMs: Date.now(), vcpu, memoryMib, diskGib }));
    } else if (request.url === '/wake') {
      const told = guestWake.parse(JSON.parse(text));
      this.wakes.push(told);
      this.#answerSize(response, told, () => (this.secret = told.secret));
    } else if (request.url === '/size') {
      const told = guestSize.parse(JSON.parse(text));
      this.sizes.push(told);
      this.#answerSize(response, told, () => {});
    } else if (request.url === '/metrics') {
      json(response, 200, METRICS);
    } else if (request.url === '/health') {
      json(response, 200, { ok: true, version: 'scripted', uptimeSeconds: 1 });
    } else if (request.url === '/exec') {
      json(response, 200, this.execResult(text));
    } else {
      json(response, 404, { error: { message: 'no route' } });
    }
  }

  #answerSize(response: ServerResponse, { vcpu, memoryMib, diskGib }: GuestSize, taken: () => void): void {
    try {
      const result = this.sizeReadBack({ clockUnixMs: Date.now(), vcpu, memoryMib, diskGib });
      taken();
      json(response, 200, result);
    } catch (error) {
      json(response, 500, { error: { message: String(error) } });
    }
  }
}

export const METRICS: GuestMetrics = {
  uptimeSeconds: 12,
  vcpu: 1,
  cpuBusyMs: 300,
  load: [0.1, 0.2, 0.3],
  memoryTotalMib: 960,
  memoryUsedMib: 100,
  diskTotalMib: 9_900,
  diskUsedMib: 400,
  networkInBytes: 5,
  networkOutBytes: 6,
  processes: 7,
};

export function json(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);

  return Buffer.concat(chunks).toString('utf8');
}
