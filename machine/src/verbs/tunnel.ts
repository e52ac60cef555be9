// `berth tunnel`: stdin and stdout become a connection to a port of a sandbox, through the public API. Made for ssh's ProxyCommand; docs/ssh.md shows it.
import type { IncomingMessage } from 'node:http';
import type { Readable, Writable } from 'node:stream';
import { errorEnvelope } from '@berth/contract/errors.ts';
import { PORT, SSH_PORT, WAKE_ON_USE_WAIT_MS } from '@berth/contract/limits.ts';
import { tunnelEnd, tunnelToSandbox } from '@berth/contract/tunnel.ts';
import { WEBSOCKET_CLOSE, WEBSOCKET_SUBPROTOCOL } from '@berth/contract/websocket.ts';
import { WebSocket } from 'ws';
import { OperatorFailure } from '../failure.ts';
import type { VerbContext } from './context.ts';

const DEFAULT_URL = 'http://127.0.0.1:4800';
/** A sandbox may have to be woken first. */
const OPEN_DEADLINE_MS = WAKE_ON_USE_WAIT_MS + 30_000;
const UNSENT_BYTES = 1_048_576;
const REFUSAL_MAX_BYTES = 65_536;

/** Resolves with the exit code once both directions came to their end. Writes nothing to stdout but what came through. */
export async function tunnel({ environment, signal }: VerbContext, sandboxId: string, port: string | undefined): Promise<number> {
  const token = environment['BERTH_API_KEY'];
  if (token === undefined || token === '') {
    throw new OperatorFailure('no API key', { remedy: 'put one into the variable BERTH_API_KEY (./berth keys create makes one)' });
  }
  const url = tunnelUrl(environment['BERTH_URL'] ?? DEFAULT_URL, sandboxId, port ?? String(SSH_PORT));
  const socket = await open(url, token, signal);
  await join(socket, process.stdin, process.stdout, signal);
  return 0;
}

function tunnelUrl(base: string, sandboxId: string, port: string): URL {
  if (!/^[1-9]\d{0,4}$/.test(port) || Number(port) > PORT.max) {
    throw new OperatorFailure(`'${port}' is no port: a whole number from ${PORT.min} to ${PORT.max}`);
  }
  const url = URL.parse(base);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new OperatorFailure(`BERTH_URL is '${base}'; it must be the URL of the API, as ${DEFAULT_URL}`);
  }
  url.protocol = url.protocol.replace('http', 'ws');
  url.pathname = url.pathname.replace(/\/$/, '') + tunnelToSandbox.path.replace('{sandboxId}', encodeURIComponent(sandboxId));
  url.search = `?port=${port}`;
  return url;
}

async function open(url: URL, token: string, signal: AbortSignal): Promise<WebSocket> {
  signal.throwIfAborted();
  const headers = { authorization: `Bearer ${token}` };
  const socket = new WebSocket(url, WEBSOCKET_SUBPROTOCOL, { headers, perMessageDeflate: false, handshakeTimeout: OPEN_DEADLINE_MS });
  const { promise, resolve, reject } = Promise.withResolvers<WebSocket>();
  const onAbort = (): void => {
    reject(signal.reason);
    socket.terminate();
  };
  signal.addEventListener('abort', onAbort, { once: true });
  socket.once('open', () => {
    // Nothing is read before somebody listens.
    socket.pause();
    resolve(socket);
  });
  socket.once('unexpected-response', (_request, response) => {
    explain(response).then((message) => reject(new OperatorFailure(message)), reject);
  });
  socket.on('error', (error) => reject(new OperatorFailure(`${url.origin} could not be reached: ${error.message}`, { cause: error })));
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

async function explain(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
    text += chunk;
    if (text.length > REFUSAL_MAX_BYTES) break;
  }
  const refused = errorEnvelope.safeParse(parseJson(text));
  return refused.success
    ? `${refused.data.error.message} (${refused.data.error.code})`
    : `the server answered ${response.statusCode}; is BERTH_URL the URL of the API?`;
}

/**
 * Joins the tunnel with a program's two ends. The end of the input is passed on and what comes afterwards is still written; once the sandbox's side has ended all
 * is over, as a program at the end of a pipe sees that only when this one ends. Rejects with why the tunnel was closed when it was for anything else.
 */
export async function join(socket: WebSocket, input: Readable, output: Writable, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onAbort = (): void => {
    reject(signal.reason);
    socket.terminate();
  };
  signal.addEventListener('abort', onAbort, { once: true });
  let written: Promise<void> | undefined;
  let ended = false;
  const end = (): void => {
    if (!ended) socket.send(JSON.stringify({ end: true }), { binary: false });
    ended = true;
  };
  const ending = (): void => {
    written ??= new Promise((done) => output.end(done));
    input.pause();
    end();
  };
  socket.on('message', (data: Buffer, isBinary) => {
    if (!isBinary) {
      if (tunnelEnd.safeParse(parseJson(data.toString('utf8'))).success) ending();
    } else if (!output.write(data)) {
      socket.pause();
      output.once('drain', () => socket.resume());
    }
  });
  socket.once('close', (code, reason) => {
    if (code === WEBSOCKET_CLOSE.ended) Promise.resolve(written).then(resolve, reject);
    else reject(new OperatorFailure(`the tunnel was closed: ${reason.toString() || `code ${code}`}`));
  });
  // Who reads the output has gone.
  output.once('error', () => socket.close(WEBSOCKET_CLOSE.ended));
  input.on('data', (chunk: Buffer) => {
    if (ended) return;
    socket.send(chunk, { binary: true }, () => {
      if (socket.bufferedAmount <= UNSENT_BYTES / 2 && !ended) input.resume();
    });
    if (socket.bufferedAmount > UNSENT_BYTES) input.pause();
  });
  input.once('end', end);
  input.once('error', (error) => {
    reject(error);
    socket.terminate();
  });
  socket.resume();
  try {
    await promise;
  } finally {
    signal.removeEventListener('abort', onAbort);
    input.destroy();
  }
}

/** Undefined for what is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
