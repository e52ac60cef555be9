// The connections of the guest wire that stop being HTTP: after a 101 they are raw streams of
// bytes. Lets nobody in without the secret.
import { STATUS_CODES, type IncomingMessage, type Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { HIGHEST_PORT, PORT_STREAM, PORT_TEXT, TERMINAL_STREAM } from '@berth/protocol/guest-limits.ts';
import { splice } from '@berth/protocol/splice.ts';
import { CommandRefused, type Commands } from '../commands/commands.ts';
import { connectLoopback, NothingListens, NotTaken } from './loopback.ts';
import { Refused, refuseIncomplete, unauthorized } from '../access/refused.ts';
import type { Secret } from '../access/secret.ts';
import { carryProgram, terminalAskedOf } from '../terminals/stream.ts';
import type { Terminals } from '../terminals/terminals.ts';

interface StreamParts {
  secret: Secret;
  commands: Commands;
  terminals: Terminals;
}

interface Upgrade {
  request: IncomingMessage;
  /** What the caller sent after its headers is still in it. */
  caller: Duplex;
  /** Aborts when the caller's connection closes. */
  signal: AbortSignal;
  /** Answers 101: from here on the connection is the caller's stream. */
  accept(this: void, protocol: string): void;
}

/** Takes the upgrades of the server. */
export function serveStreams(server: Server, parts: StreamParts): void {
  server.on('upgrade', (request, socket, head) => {
    const closed = new AbortController();
    socket.once('close', () => closed.abort());
    // What becomes of the stream is the business of who answers; before that, a caller that went
    // away is nobody's.
    socket.on('error', () => undefined);
    if (head.length > 0) socket.unshift(head);

    const accept = (protocol: string): void => {
      socket.write(`HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: ${protocol}\r\n\r\n`);
    };
    serve(parts, { request, caller: socket, signal: closed.signal, accept }).catch((error: unknown) =>
      refuse(request, socket, error),
    );
  });
}

async function serve(parts: StreamParts, upgrade: Upgrade): Promise<void> {
  const { secret } = parts;
  const { method, url = '', headers } = upgrade.request;
  if (!secret.accepts(headers.authorization)) throw unauthorized();

  refuseIncomplete(secret);
  const [path = '', query = ''] = url.split('?', 2);
  const port = /^\/ports\/([^/]+)$/.exec(path)?.[1];
  if (method === 'GET' && port !== undefined) {
    await toPort(upgrade, port);
  } else if (method === 'GET' && path === '/terminal') {
    await toTerminal(upgrade, parts, new URLSearchParams(query));
  } else {
    throw new Refused(
      404,
      `the guest daemon has no ${method} ${path} to upgrade; it has GET /ports/{port}, GET /terminal`,
    );
  }
}

async function toTerminal(
  upgrade: Upgrade,
  { commands, terminals }: StreamParts,
  query: URLSearchParams,
): Promise<void> {
  const { request, caller, signal, accept } = upgrade;
  const asked = terminalAskedOf(query);
  requireProtocol(request, TERMINAL_STREAM);
  const program = await (asked.tty ? terminals.open(asked, signal) : commands.attach(asked.command, signal));
  accept(TERMINAL_STREAM);
  await carryProgram(program, caller);
}

async function toPort({ request, caller, signal, accept }: Upgrade, text: string): Promise<void> {
  const port = Number(text);
  if (!PORT_TEXT.test(text) || port > HIGHEST_PORT)
    throw new Refused(400, `'${text}' is no port: a whole number from 1 to ${HIGHEST_PORT}`);

  requireProtocol(request, PORT_STREAM);
  if (port === request.socket.localPort) throw new Refused(403, "this is the guest daemon's own port");

  const program = await connectLoopback(port, signal);
  accept(PORT_STREAM);
  await splice(caller, program);
}

function requireProtocol(request: IncomingMessage, protocol: string): void {
  if (request.headers.upgrade?.toLowerCase() !== protocol)
    throw new Refused(400, `this is asked for with Upgrade: ${protocol}`);
}

function refuse(request: IncomingMessage, socket: Duplex, error: unknown): void {
  if (socket.destroyed) {
    // The caller has gone.
    return;
  }
  const status = statusOf(error);
  if (status === 500) console.error(`${request.method} ${request.url}:`, error);

  const message = (error instanceof Error ? error.message : String(error)).slice(0, 4_096);
  const body = JSON.stringify({ error: { message } });
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
    () => socket.destroy(),
  );
}

function statusOf(error: unknown): number {
  if (error instanceof Refused || error instanceof CommandRefused) return error.status;

  return error instanceof NothingListens ? 502 : error instanceof NotTaken ? 504 : 500;
}
