// A WebSocket of the API as a command opens it: a refusal in the words of the API, a server that is
// silent for too long is gone, and why it was closed in a sentence. Must not know what goes over
// it.
import type { IncomingMessage } from 'node:http';
import { errorEnvelope } from '@berth/contract/route/errors.ts';
import { WAKE_ON_USE_WAIT_MS, WEBSOCKET } from '@berth/sdk/limits';
import type { Route } from '@berth/contract/route/route.ts';
import { WEBSOCKET_CLOSE, WEBSOCKET_SUBPROTOCOL } from '@berth/contract/connections/websocket.ts';
import { parseJson } from '@berth/protocol/json-text.ts';
import { BerthError } from '@berth/sdk';
import { WebSocket } from 'ws';
import { CliFailure } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { sandboxId } from '../service/sandbox-id.ts';
import type { Connection } from '../service/connection.ts';

/** A sandbox may have to be woken first. */
const OPEN_DEADLINE_MS = WAKE_ON_USE_WAIT_MS + 30_000;
/** The server asks more often whether we are there. */
const SILENCE_MS = 3 * WEBSOCKET.pingEveryMs;
const REFUSAL_MAX_BYTES = 65_536;

const WHY_CLOSED: Readonly<Record<string, string>> = {
  sandbox_state_conflict: 'the sandbox is not awake any more',
  sandbox_not_found: 'the sandbox is gone',
  unauthenticated: 'the API key was revoked, or has expired',
  permission_denied: 'the API key may not connect to sandboxes any more',
  org_access_denied: 'the API key has no access to the org any more',
  shutting_down: 'the server stops; try again',
};

/** Where the server gave no reason; 1006 is that of no close frame. */
const UNSAID: Readonly<Record<number, string>> = {
  [WEBSOCKET_CLOSE.ended]: 'the server ended it',
  [WEBSOCKET_CLOSE.goingAway]: 'the server stops',
  1006: 'the connection to the server broke',
};

/** What a WebSocket leads to. */
export interface WebSocketTarget {
  /** On a sandbox, asked for with an upgrade. */
  route: Route;
  sandboxId: string;
  query: Readonly<Record<string, string>>;
}

/**
 * Resolves with it open and paused: nothing is read before somebody listens. Rejects with a
 * BerthError, or with the signal's reason.
 */
export async function openApiWebSocket(
  connection: Connection,
  target: WebSocketTarget,
  signal: AbortSignal,
): Promise<WebSocket> {
  signal.throwIfAborted();
  const path = target.route.path.replace('{sandboxId}', sandboxId(target.sandboxId));
  const url = new URL(
    `${connection.url.replace(/^http/, 'ws')}${path}?${new URLSearchParams(target.query).toString()}`,
  );
  const headers = { authorization: `Bearer ${await connection.token()}` };
  const socket = new WebSocket(url, WEBSOCKET_SUBPROTOCOL, {
    headers,
    perMessageDeflate: false,
    handshakeTimeout: OPEN_DEADLINE_MS,
  });
  const { promise, resolve, reject } = Promise.withResolvers<WebSocket>();
  const onAbort = (): void => {
    reject(signal.reason);
    socket.terminate();
  };
  signal.addEventListener('abort', onAbort, { once: true });
  socket.once('open', () => {
    socket.pause();
    endWhenSilent(socket);
    resolve(socket);
  });
  socket.once('unexpected-response', (_request, response) => {
    textOf(response).then((text) => reject(refused(path, response.statusCode, text)), reject);
  });
  socket.on('error', (error) => reject(unreachable(connection.url, error)));
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

function refused(path: string, status: number | undefined, text: string): BerthError {
  const refusal = errorEnvelope.safeParse(parseJson(text));
  if (refusal.success) return new BerthError(refusal.data.error.message, { code: refusal.data.error.code, status });
  return new BerthError(`GET ${path} was answered ${status} by something else than Berth`, {
    code: 'invalid_answer',
    status,
  });
}

function unreachable(url: string, error: Error): BerthError {
  return new BerthError(`${url} could not be reached: ${error.message.trim()}`, {
    code: 'connection_failed',
    cause: error,
  });
}

/** Why something was closed that did not come to its end. */
export function closedFailure(what: string, code: number, reason: Buffer): CliFailure {
  const text = reason.toString('utf8');
  const words = WHY_CLOSED[text];
  if (words !== undefined) return new CliFailure(`${what} was closed: ${words} (${text})`);
  const unsaid = UNSAID[code] ?? `code ${code}`;
  return new CliFailure(`${what} was closed: ${text === '' ? unsaid : plainText(text)}`);
}

function endWhenSilent(socket: WebSocket): void {
  const timer = setTimeout(() => {
    // One that we hold back cannot be heard.
    if (socket.isPaused) timer.refresh();
    else socket.terminate();
  }, SILENCE_MS);
  // Nor can it hear that it asks: it is told that we are there, or it would cut a slow reader off.
  const telling = setInterval(() => {
    if (socket.isPaused && socket.readyState === socket.OPEN) socket.pong();
  }, WEBSOCKET.pingEveryMs / 2);
  socket.on('ping', () => timer.refresh());
  socket.on('message', () => timer.refresh());
  socket.once('close', () => {
    clearTimeout(timer);
    clearInterval(telling);
  });
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
    text += chunk;
    if (text.length > REFUSAL_MAX_BYTES) break;
  }
  return text;
}
