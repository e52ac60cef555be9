// The guest daemon's HTTP face: finds the route, lets nobody in without the secret, bounds and
// checks every body, shapes every answer.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { STREAM_HEAD_BYTES } from '@berth/protocol/guest-limits.ts';
import type { GuestHealth, GuestSizeResult } from '@berth/protocol/guest.ts';
import { BodyRefused, checkClone, checkExecRequest, checkIdentity, checkSize, checkWake } from './checks.ts';
import type { Clone } from '../clones/clone.ts';
import { CommandRefused, type Commands } from '../commands/commands.ts';
import { listFiles, readFile, writeFile } from './file-routes.ts';
import { FileRefused, type Files } from '../files/files.ts';
import type { IdentityStep } from '../identity/identity.ts';
import { readMetrics } from '../machine/metrics.ts';
import type { PipeStore } from '../commands/pipes.ts';
import { Refused, refuseIncomplete, unauthorized } from '../access/refused.ts';
import type { Secret } from '../access/secret.ts';
import { bringToSize } from '../machine/size.ts';
import { serveStreams } from '../connections/streams.ts';
import type { Terminals } from '../terminals/terminals.ts';
import { TurnTaken, type Turn } from '../machine/turn.ts';
import type { WakeStep } from '../identity/wake.ts';

/**
 * The longest command of the protocol, every character as a six byte escape, and the rest of its
 * body.
 */
const BODY_BYTES = 6 * 1_048_576 + 1_024;
/** For a caller who has not shown the secret yet. */
const WAKE_BODY_BYTES = 4_096;
/**
 * A URL and a branch of the protocol's lengths, every character as a six byte escape, and the
 * longest box.
 */
const CLONE_BODY_BYTES = 6 * 8_192 + 163_840;
const MAX_CONNECTIONS = 1_024;
const BOUNDS = {
  keepAliveTimeout: 75_000,
  headersTimeout: 20_000,
  requestTimeout: 60_000,
  maxHeaderSize: STREAM_HEAD_BYTES,
} as const;
const VERSION = '0.1.0';

export interface GuestParts {
  secret: Secret;
  identity: IdentityStep;
  wake: WakeStep;
  /** Held by whatever changes the machine. */
  turn: Turn;
  /** Whether a size is brought about or only kept. */
  changesMachine: boolean;
  commands: Commands;
  clone: Clone;
  terminals: Terminals;
  files: Files;
  pipes: PipeStore;
  /** While a command or a clone runs, its answer gets a space this often. */
  spaceEveryMs: number;
  /** Why this daemon could not be of use to a machine, when that is known beforehand. */
  fault: string | undefined;
}

type Handler = (
  parts: GuestParts,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
  query: URLSearchParams,
) => Promise<void>;

const routes: Readonly<Record<string, Handler>> = {
  'POST /exec': exec,
  'GET /health': health,
  'POST /identity': identity,
  'POST /template': template,
  'POST /wake': wake,
  'POST /size': size,
  'GET /metrics': metrics,
  'POST /clone': clone,
  'POST /clone/key': cloneKey,
  'POST /clone/end': endClone,
  'GET /file': read,
  'PUT /file': write,
  'GET /files': list,
};

/** Makes the server; it does not listen yet. */
export function createGuestServer(parts: GuestParts): Server {
  const server = createServer(BOUNDS, (request, response) => {
    const closed = new AbortController();
    response.once('close', () => closed.abort());
    answer(parts, request, response, closed.signal).catch((error: unknown) => refuse(request, response, error));
  });
  server.maxConnections = MAX_CONNECTIONS;
  serveStreams(server, parts);
  return server;
}

async function answer(
  parts: GuestParts,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const [path, query] = (request.url ?? '').split('?', 2);
  const route = `${request.method} ${path}`;
  // A wake may show the secret in force in its body instead.
  if (!parts.secret.accepts(request.headers.authorization) && route !== 'POST /wake') throw unauthorized();

  const handler = routes[route];
  if (handler === undefined)
    throw new Refused(404, `the guest daemon has no ${route}; it has ${Object.keys(routes).join(', ')}`);

  await handler(parts, request, response, signal, new URLSearchParams(query));
}

async function exec(
  { commands, secret, spaceEveryMs }: GuestParts,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  refuseIncomplete(secret);
  const body = checkExecRequest(await readJson(request));
  const command = await commands.start(body, signal);
  const kill = (): void => command.kill();
  signal.addEventListener('abort', kill, { once: true });
  if (signal.aborted) command.kill();

  response.writeHead(200, { 'content-type': 'application/json' });
  response.flushHeaders();
  const spaces = setInterval(() => response.write(' '), spaceEveryMs);
  const result = await command.result;
  clearInterval(spaces);
  response.end(JSON.stringify(result));
}

async function clone(
  parts: GuestParts,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  refuseIncomplete(parts.secret);
  const body = checkClone(await readJson(request, CLONE_BODY_BYTES));
  response.writeHead(200, { 'content-type': 'application/json' });
  response.flushHeaders();
  const spaces = setInterval(() => response.write(' '), parts.spaceEveryMs);
  try {
    response.end(JSON.stringify(await parts.clone.run(body, signal)));
  } finally {
    clearInterval(spaces);
  }
}

async function cloneKey(
  { clone, secret }: GuestParts,
  _request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  refuseIncomplete(secret);
  send(response, 200, { key: await clone.key() });
}

async function endClone({ clone }: GuestParts, _request: IncomingMessage, response: ServerResponse): Promise<void> {
  await clone.end();
  send(response, 200, {});
}

async function health(
  { pipes, secret, fault }: GuestParts,
  _request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (fault !== undefined) throw new Refused(503, fault);

  refuseIncomplete(secret);
  await pipes.full();
  send(response, 200, { ok: true, version: VERSION, uptimeSeconds: process.uptime() } satisfies GuestHealth);
}

async function identity(
  parts: GuestParts,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const receivedAt = performance.now();
  const body = checkIdentity(await readJson(request));
  send(response, 200, await parts.turn.run('an identity', () => parts.identity.apply(body, receivedAt, signal)));
}

async function template(
  { identity, turn }: GuestParts,
  _request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  await turn.run('the end of an identity', async () => identity.forget());
  send(response, 200, {});
}

async function wake(
  parts: GuestParts,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const receivedAt = performance.now();
  const { authorization } = request.headers;
  const body = checkWake(await readJson(request, WAKE_BODY_BYTES));
  // A call that is repeated finds the secret in force that it brings: the first one may have come
  // this far before its caller gave up.
  if (!parts.secret.accepts(authorization) && !parts.secret.isInForce(body.secret)) throw unauthorized();

  // Its connections are long gone. Whoever wants it asks again.
  await parts.clone.end();
  const { localPort = 0, remotePort = 0, remoteAddress = '' } = request.socket;
  const connection = { localPort, remotePort, remoteAddress };
  send(response, 200, await parts.turn.run('a wake', () => parts.wake.apply(body, receivedAt, connection, signal)));
}

async function size(
  parts: GuestParts,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  refuseIncomplete(parts.secret);
  const body = checkSize(await readJson(request));
  const reached = await parts.turn.run('a size', async () => (parts.changesMachine ? bringToSize(body, signal) : body));
  send(response, 200, { clockUnixMs: Date.now(), ...reached } satisfies GuestSizeResult);
}

async function metrics({ secret }: GuestParts, _request: IncomingMessage, response: ServerResponse): Promise<void> {
  refuseIncomplete(secret);
  send(response, 200, readMetrics());
}

async function read(
  { files, secret }: GuestParts,
  _: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
  query: URLSearchParams,
) {
  refuseIncomplete(secret);
  await readFile(files, query, response, signal);
}

async function list(
  { files, secret }: GuestParts,
  _: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
  query: URLSearchParams,
) {
  refuseIncomplete(secret);
  await listFiles(files, query, response, signal);
}

async function write(
  { files, secret }: GuestParts,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
  query: URLSearchParams,
): Promise<void> {
  refuseIncomplete(secret);
  send(response, 200, await writeFile(files, query, request, signal));
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
  const status = statusOf(error);
  if (status >= 500 && !(error instanceof FileRefused)) console.error(`${request.method} ${request.url}:`, error);

  const message = (error instanceof Error ? error.message : String(error)).slice(0, 4_096);
  // Without its `errno` when it has none: JSON leaves out what is undefined.
  send(response, status, {
    error: error instanceof FileRefused ? { message, code: error.code, errno: error.errno } : { message },
  });
}

function statusOf(error: unknown): number {
  if (error instanceof Refused || error instanceof CommandRefused || error instanceof FileRefused) return error.status;

  return error instanceof BodyRefused ? 400 : error instanceof TurnTaken ? 409 : 500;
}

async function readJson(request: IncomingMessage, maxBytes: number = BODY_BYTES): Promise<unknown> {
  const text = await readText(request, maxBytes);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new BodyRefused(`the body is not JSON: ${(error as Error).message}`);
  }
}

function readText(request: IncomingMessage, maxBytes: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= maxBytes) {
        chunks.push(chunk);
      } else {
        // The rest is read and dropped, within the server's time for a request: a caller that still
        // sends would not see the answer otherwise.
        chunks.length = 0;
        reject(new Refused(413, `the body is longer than ${maxBytes} bytes`));
      }
    });
    request.once('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
    request.once('error', reject);
  });
}
