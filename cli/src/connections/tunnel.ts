// `berth tunnel`: stdin and stdout become a connection to a port of a sandbox, through the API.
// Made for ssh's ProxyCommand; docs/operations.md shows it.
import type { Readable, Writable } from 'node:stream';
import { SSH_PORT } from '@berth/sdk/limits';
import { tunnelEnd, tunnelToSandbox } from '@berth/contract/connections/tunnel.ts';
import { WEBSOCKET_CLOSE } from '@berth/contract/connections/websocket.ts';
import { parseJson } from '@berth/protocol/json-text.ts';
import type { WebSocket } from 'ws';
import { closedFailure, openApiWebSocket } from './websocket.ts';
import type { CliContext } from '../program/context.ts';
import type { Input } from '../program/command-spec.ts';

const UNSENT_BYTES = 1_048_576;

/**
 * Resolves once both directions came to their end. Writes nothing to stdout but what came through.
 */
export async function tunnel(
  { connect, signal, stdin, stdout }: CliContext,
  { args: [id = ''], options }: Input<{ port?: number }>,
): Promise<void> {
  const target = { route: tunnelToSandbox, sandboxId: id, query: { port: String(options.port ?? SSH_PORT) } };
  const socket = await openApiWebSocket(await connect(), target, signal);
  await join(socket, stdin, stdout, signal);
}

/**
 * Joins the tunnel with a program's two ends. The end of the input is passed on and what comes
 * afterwards is still written; once the sandbox's side has ended all is over, as a program at the
 * end of a pipe sees that only when this one ends. Rejects with why the tunnel was closed when it
 * was for anything else.
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
    else reject(closedFailure('the tunnel', code, reason));
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
