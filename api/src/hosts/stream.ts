// Asks a host for a raw stream into a guest (protocol/src/host.ts): an HTTP upgrade that is
// answered with 101, or with an error of the host. Knows neither sandboxes nor what goes over the
// stream.
import http from 'node:http';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { hostError } from '@berth/protocol/host.ts';
import { HostError } from './error.ts';
import type { Target } from './exchange.ts';

/** Longest refusal that is read. */
const REFUSAL_MAX_BYTES = 64 * 1024;

export interface StreamRequest {
  target: Target;
  token: string;
  path: string;
  /** Value of the header `Upgrade`. */
  protocol: string;
  deadlineMs: number;
  /**
   * Ends the opening, which then rejects with the signal's reason. What was opened is the caller's
   * to destroy.
   */
  signal?: AbortSignal | undefined;
}

/**
 * Resolves with the stream, which can be half closed. Rejects with {@link HostError} or the
 * signal's reason; nothing stays open then.
 */
export async function openHostStream(request: StreamRequest): Promise<Duplex> {
  const { target, token, path, protocol, deadlineMs, signal } = request;
  signal?.throwIfAborted();
  const where = `GET ${path.replace(/\?.*/, '')}`;
  const { promise, resolve, reject } = Promise.withResolvers<Duplex>();
  const outgoing = http.request({
    path,
    createConnection: () =>
      connect({
        ...('socketPath' in target
          ? { path: target.socketPath }
          : { host: target.host, port: target.port, noDelay: true }),
        allowHalfOpen: true,
      }),
    headers: { host: 'host', connection: 'Upgrade', upgrade: protocol, authorization: `Bearer ${token}` },
  });
  const giveUp = (reason: unknown): void => {
    reject(reason);
    outgoing.destroy();
  };
  const onAbort = (): void => giveUp(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  const timer = setTimeout(
    () => giveUp(new HostError('host_timeout', `no answer to ${where} within ${deadlineMs} ms`)),
    deadlineMs,
  );
  outgoing.on('upgrade', (_response, stream, head) => {
    // Until its owner listens for them.
    stream.on('error', () => undefined);
    if (head.length > 0) stream.unshift(head);
    resolve(stream);
  });
  outgoing.on('response', (response) => {
    readRefusal(response).then(
      (text) => reject(refusalOf(response.statusCode ?? 0, text, where)),
      (error: unknown) => giveUp(error),
    );
  });
  outgoing.on('error', (error) =>
    reject(new HostError('host_unreachable', `${where}: ${error.message}`, { cause: error })),
  );
  outgoing.end();
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }
}

async function readRefusal(response: http.IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > REFUSAL_MAX_BYTES) break;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function refusalOf(status: number, text: string, where: string): HostError {
  try {
    const refused = hostError.safeParse(JSON.parse(text));
    if (refused.success) return new HostError(refused.data.error.code, refused.data.error.message);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  return new HostError('invalid_answer', `${where}: status ${status} without an error the protocol knows`);
}
