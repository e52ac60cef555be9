// Opens WebSockets of sandboxes: address, credential, timeout and refusals.
import { BerthError } from '../transport/errors.ts';
import { BEARER_SUBPROTOCOL, OUTCOME_SUBPROTOCOL, WEBSOCKET_SUBPROTOCOL } from '../generated/contract-tables.ts';
import { Deadline } from '../transport/time.ts';
import { refused, type CallOptions, type Credential } from '../transport/transport.ts';
import { Connection, type OpenFailure } from './connection.ts';
import { isNodeWebSocket, type UpgradeResponse, type WebSocketConstructor } from './web-socket.ts';

/** Service of the streams. */
export interface Endpoint {
  /** Without a trailing slash. */
  url: string;
  credential: Credential;
  /** undefined: the global one. */
  WebSocket: WebSocketConstructor | undefined;
}

export interface Target {
  /** Name for messages. */
  what: string;
  path: string;
  query: Readonly<Record<string, string>>;
}

const REFUSAL_CHARACTERS = 65_536;

/**
 * Resolves when the WebSocket is open; the signal also closes it later.
 * @param make attaches the receiver
 */
export async function openConnection<T>(
  endpoint: Endpoint,
  target: Target,
  { signal, timeoutMs }: CallOptions & { timeoutMs: number },
  make: (connection: Connection) => T,
): Promise<T> {
  signal?.throwIfAborted();
  const connection = await connect(endpoint, target);
  const made = make(connection);
  const what = `GET ${target.path}`;
  const deadline = new Deadline(timeoutMs, what, [signal]);
  const stop = (): void => connection.fail(deadline.signal.reason);
  deadline.signal.addEventListener('abort', stop, { once: true });
  let outcome: OpenFailure | null;
  try {
    if (deadline.signal.aborted) stop();
    outcome = await connection.opened;
    deadline.signal.throwIfAborted();
    if (outcome !== null && 'response' in outcome) {
      const failure = await refusal(what, outcome.response, connection, deadline.signal);
      signal?.throwIfAborted();
      throw failure;
    }
    if (outcome !== null && 'refused' in outcome) {
      connection.close();
      const { status, requestId, retryAfter, body } = outcome.refused;
      const headers = headersOf({ 'x-request-id': requestId, 'retry-after': retryAfter });
      throw refused(what, { status: Number(status), headers }, JSON.stringify(body) ?? '', false);
    }
  } finally {
    deadline.end();
  }
  if (outcome !== null) {
    const words = outcome.message === '' ? 'the WebSocket reported no reason' : outcome.message;
    throw new BerthError(`cannot connect to ${endpoint.url}: ${words}`, { code: 'connection_failed' });
  }
  const abort = (): void => connection.fail(signal?.reason);
  signal?.addEventListener('abort', abort, { once: true });
  connection.onEnd(() => signal?.removeEventListener('abort', abort));
  return made;
}

async function connect(endpoint: Endpoint, { what, path, query }: Target): Promise<Connection> {
  const { url, credential, WebSocket = globalWebSocket() } = endpoint;
  const token = typeof credential === 'string' ? credential : await credential();
  const address = `${url.replace(/^http/, 'ws')}${path}?${new URLSearchParams(query).toString()}`;
  if (isNodeWebSocket(WebSocket)) {
    const options = { headers: { authorization: `Bearer ${token}` }, perMessageDeflate: false };
    const Implementation = WebSocket as new (url: string, protocols: string[], options: unknown) => object;
    return new Connection(what, new Implementation(address, [WEBSOCKET_SUBPROTOCOL], options));
  }
  // Others do not expose the response to a refused upgrade.
  const protocols = [WEBSOCKET_SUBPROTOCOL, OUTCOME_SUBPROTOCOL, `${BEARER_SUBPROTOCOL}${token}`];
  return new Connection(what, new WebSocket(address, protocols));
}

function globalWebSocket(): WebSocketConstructor {
  const { WebSocket } = globalThis as { WebSocket?: WebSocketConstructor };
  if (WebSocket !== undefined) return WebSocket;
  throw new BerthError(
    'this runtime has no global WebSocket: pass WebSocket of the npm package ws to new Berth({ WebSocket })',
    { code: 'configuration' },
  );
}

/** Reads the response. A body that has not ended when `signal` aborts is used as far as it came. */
async function refusal(
  what: string,
  response: UpgradeResponse,
  connection: Connection,
  signal: AbortSignal,
): Promise<BerthError> {
  let text = '';
  const stop = (): void => response.destroy();
  signal.addEventListener('abort', stop, { once: true });
  try {
    for await (const chunk of response.setEncoding('utf8')) {
      text += chunk;
      if (text.length > REFUSAL_CHARACTERS) break;
    }
  } catch {
    // Use the part received.
  } finally {
    signal.removeEventListener('abort', stop);
  }
  connection.close();
  return refused(what, { status: response.statusCode ?? 0, headers: headersOf(response.headers) }, text, false);
}

function headersOf(values: Readonly<Record<string, unknown>>): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(values)) if (typeof value === 'string') headers.set(name, value);
  return headers;
}
