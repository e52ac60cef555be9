// The guest daemon's HTTP face: finds the route, lets nobody in without the secret, bounds and checks every body, shapes every answer.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { GuestHealth } from '@berth/protocol/guest.ts';
import { BodyRefused, checkExecRequest, checkIdentity } from './checks.ts';
import { CommandRefused, type Commands } from './commands.ts';
import type { IdentityStep } from './identity.ts';
import type { PipeStore } from './pipes.ts';
import type { Secret } from './secret.ts';

/** The longest command of the protocol, every character as a six byte escape, and the rest of its body. */
const BODY_BYTES = 6 * 1_048_576 + 1_024;
const MAX_CONNECTIONS = 1_024;
const VERSION = '0.1.0';

/** A request that is refused with this status. */
class Refused extends Error {
  override readonly name = 'Refused';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export interface GuestParts {
  secret: Secret;
  identity: IdentityStep;
  commands: Commands;
  pipes: PipeStore;
  /** While a command runs, its answer gets a space this often. */
  spaceEveryMs: number;
  /** Why this daemon could not be of use to a machine, when that is known beforehand. */
  fault: string | undefined;
}

type Handler = (parts: GuestParts, request: IncomingMessage, response: ServerResponse, signal: AbortSignal) => Promise<void>;

const routes: Readonly<Record<string, Handler>> = {
  'POST /exec': exec,
  'GET /health': health,
  'POST /identity': identity,
  'POST /template': template,
};

/** Makes the server; it does not listen yet. */
export function createGuestServer(parts: GuestParts): Server {
  const server = createServer({ keepAliveTimeout: 75_000, headersTimeout: 20_000, requestTimeout: 60_000 }, (request, response) => {
    const closed = new AbortController();
    response.once('close', () => closed.abort());
    answer(parts, request, response, closed.signal).catch((error: unknown) => refuse(request, response, error));
  });
  server.maxConnections = MAX_CONNECTIONS;
  return server;
}

async function answer(parts: GuestParts, request: IncomingMessage, response: ServerResponse, signal: AbortSignal): Promise<void> {
  if (!parts.secret.accepts(request.headers.authorization)) {
    throw new Refused(401, 'this call needs the secret of the machine as a bearer token');
  }
  const handler = routes[`${request.method} ${request.url}`];
  if (handler === undefined) {
    throw new Refused(404, `the guest daemon has no ${request.method} ${request.url}; it has ${Object.keys(routes).join(', ')}`);
  }
  await handler(parts, request, response, signal);
}

async function exec(
  { commands, secret, spaceEveryMs }: GuestParts,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  if (secret.state === 'incomplete') {
    throw new Refused(503, 'the identity of this machine is not applied yet, or not completely');
  }
  const body = checkExecRequest(await readJson(request));
  const command = await commands.start(body, signal);
  const kill = (): void => command.kill();
  signal.addEventListener('abort', kill, { once: true });
  if (signal.aborted) {
    command.kill();
  }
  response.writeHead(200, { 'content-type': 'application/json' });
  response.flushHeaders();
  const spaces = setInterval(() => response.write(' '), spaceEveryMs);
  const result = await command.result;
  clearInterval(spaces);
  response.end(JSON.stringify(result));
}

async function health({ pipes, secret, fault }: GuestParts, _request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (fault !== undefined) {
    throw new Refused(503, fault);
  }
  if (secret.state === 'incomplete') {
    throw new Refused(503, 'the identity of this machine is not applied yet, or not completely');
  }
  await pipes.full();
  send(response, 200, { ok: true, version: VERSION, uptimeSeconds: process.uptime() } satisfies GuestHealth);
}

async function identity(parts: GuestParts, request: IncomingMessage, response: ServerResponse, signal: AbortSignal): Promise<void> {
  const receivedAt = performance.now();
  const body = checkIdentity(await readJson(request));
  if (parts.identity.underWay) {
    throw new Refused(409, 'another identity is being applied');
  }
  send(response, 200, await parts.identity.apply(body, receivedAt, signal));
}

async function template({ identity, secret }: GuestParts, _request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (identity.underWay) {
    throw new Refused(409, 'an identity is being applied');
  }
  secret.forget();
  send(response, 200, {});
}

function send(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

function refuse(request: IncomingMessage, response: ServerResponse, error: unknown): void {
  if (response.destroyed || request.errored !== null) {
    // The caller has gone.
    return;
  }
  if (response.headersSent) {
    console.error('an answer could not be ended:', error);
    response.destroy();
    return;
  }
  const status = error instanceof BodyRefused ? 400 : error instanceof Refused || error instanceof CommandRefused ? error.status : 500;
  if (status >= 500) {
    console.error(`${request.method} ${request.url}:`, error);
  }
  send(response, status, { error: { message: (error instanceof Error ? error.message : String(error)).slice(0, 4_096) } });
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const text = await readText(request);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new BodyRefused(`the body is not JSON: ${(error as Error).message}`);
  }
}

function readText(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= BODY_BYTES) {
        chunks.push(chunk);
      } else {
        // The rest is read and dropped, within the server's time for a request: a caller that still sends would not see the answer otherwise.
        chunks.length = 0;
        reject(new Refused(413, `the body is longer than ${BODY_BYTES} bytes`));
      }
    });
    request.once('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
    request.once('error', reject);
  });
}
