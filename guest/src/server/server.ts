// The HTTP server of the guest daemon: authenticates by the secret, validates every request against
// the wire, and formats every refusal.
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { STREAM_HEAD_BYTES } from '@berth/protocol/guest-limits.ts';
import { GUEST_WIRE, type WireCall } from '@berth/protocol/calls/wire.ts';
import { CallServer, RequestFault, type Part, type Received, type Reply } from '@berth/protocol/http/serve.ts';
import { messageOf } from '@berth/os/errors.ts';
import { AgentRefused } from '../bridge/refusal.ts';
import { Refused, refuseIncomplete, unauthorized } from '../access/refused.ts';
import type { Secret } from '../access/secret.ts';
import { CommandRefused } from '../keeper/launcher.ts';
import { NothingListens, ConnectionRefused } from '../connections/loopback.ts';
import { FileRefused } from '../files/refused.ts';
import { ProcessRefused } from '../processes/refused.ts';
import { ChangeInProgress } from '../machine/change-lock.ts';
import { BodyRefused, checkValue } from '../access/checks.ts';

const MAX_CONNECTIONS = 1_024;
const BOUNDS = {
  keepAliveTimeout: 75_000,
  headersTimeout: 20_000,
  requestTimeout: 60_000,
  maxHeaderSize: STREAM_HEAD_BYTES,
} as const;
/** Calls allowed without a complete identity. */
const WITHOUT_IDENTITY: ReadonlySet<string> = new Set(['identity', 'template', 'wake', 'endClone']);

/** Handler of a call with validated parts. */
type Handler = (received: never) => Promise<Reply>;

interface ServerParts {
  secret: Secret;
  spaceEveryMs: number;
  /** By name of the call. */
  handlers: Readonly<Record<string, Handler>>;
  /** Defaults to every call of the guest daemon. */
  wire?: readonly WireCall[];
}

/** Creates the server; it does not listen yet. */
export function createGuestServer({ secret, spaceEveryMs, handlers, wire = GUEST_WIRE }: ServerParts): Server {
  const calls = new CallServer<WireCall>({
    calls: wire,
    spaceEveryMs,
    admit: ({ headers }, call) => {
      // A wake may carry the current secret in its body instead.
      if (!secret.accepts(headers.authorization) && call?.name !== 'wake') throw unauthorized();

      if (call !== undefined && !WITHOUT_IDENTITY.has(call.name)) refuseIncomplete(secret);
    },
    unknownCall: (route, upgrade, others) => {
      const known = others.map(({ method, path }) => `${method} ${path}`).join(', ');
      return new Refused(404, `the guest daemon has no ${route}${upgrade ? ' to upgrade' : ''}; it has ${known}`);
    },
    check: ({ schemas }: WireCall, part: Part, value: unknown) =>
      checkValue(schemas[part] ?? {}, value, `the ${part}`, part !== 'body'),
    handle: async (call: WireCall, received: Received) => {
      const handler = handlers[call.name] as ((received: Received) => Promise<Reply>) | undefined;
      if (handler === undefined) throw new Error(`the call ${call.name} has no handler`);

      return handler(received);
    },
    refusal: refusalOf,
    brokeOff: (error) => console.error('a response broke off:', error),
  });
  const server = createServer(BOUNDS, (request, response) => void calls.serve(request, response));
  server.on('upgrade', (request, socket, head) => void calls.serveUpgrade(request, socket, head));
  server.maxConnections = MAX_CONNECTIONS;
  return server;
}

function refusalOf(error: unknown, request: IncomingMessage): { status: number; body: object } {
  const { status, code, errno } = knownOf(error);
  // Without the query, which may have a command.
  if (status >= 500 && code === undefined) console.error(`${request.method} ${request.url?.split('?')[0]}:`, error);

  const message = messageOf(error).slice(0, 4_096);
  // JSON omits undefined fields.
  return { status, body: { error: { message, code, errno } } };
}

function knownOf(error: unknown): { status: number; code?: string | undefined; errno?: string | undefined } {
  if (error instanceof FileRefused || error instanceof Refused || error instanceof CommandRefused) return error;

  if (error instanceof AgentRefused || error instanceof ProcessRefused) return error;

  if (error instanceof BodyRefused) return { status: 400, code: error.code };

  if (error instanceof RequestFault) {
    if (error.kind === 'upload_too_long') return { status: 413, code: 'file_too_large' };

    return { status: error.kind === 'body_too_long' ? 413 : 400 };
  }
  if (error instanceof NothingListens) return { status: 502 };

  return { status: error instanceof ConnectionRefused ? 504 : error instanceof ChangeInProgress ? 409 : 500 };
}
