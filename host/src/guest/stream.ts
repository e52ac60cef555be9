// Asks a guest daemon for a raw stream (an HTTP upgrade). The guest is hostile: headers are bounded
// in bytes and time, and nothing of an answer is followed.
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { readAtMost } from '@berth/os/bounded-body.ts';
import type { GuestEndpoint } from '../vm/driver.ts';

const HEADER_BYTES = 8_192;
const REFUSAL_BYTES = 16_384;

export interface StreamAsked {
  path: string;
  /** Value of the header `Upgrade`. */
  protocol: string;
  secret: string | null;
}

/** The stream, which can be half closed, or what the guest answered instead. */
export type StreamAnswer = { stream: Duplex } | { status: number; text: string };

/**
 * Rejects with the signal's reason, or with what went wrong; nothing stays open then. Once it has
 * resolved the signal means nothing any more.
 */
export async function askForStream(
  endpoint: GuestEndpoint,
  { path, protocol, secret }: StreamAsked,
  signal: AbortSignal,
): Promise<StreamAnswer> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<StreamAnswer>();
  const request = httpRequest({
    path,
    createConnection: () =>
      connect({ host: endpoint.address, port: endpoint.port, allowHalfOpen: true, noDelay: true }),
    maxHeaderSize: HEADER_BYTES,
    headers: {
      host: 'guest',
      connection: 'Upgrade',
      upgrade: protocol,
      ...(secret === null ? {} : { authorization: `Bearer ${secret}` }),
    },
  });
  const onAbort = (): void => {
    reject(signal.reason);
    request.destroy();
  };
  signal.addEventListener('abort', onAbort, { once: true });
  request.once('upgrade', (response, stream, head) => {
    if (response.headers.upgrade !== protocol) {
      stream.destroy();
      reject(new Error('the guest switched to another protocol than it was asked for'));
      return;
    }
    // Until its owner listens for them.
    stream.on('error', () => undefined);
    if (head.length > 0) stream.unshift(head);

    resolve({ stream });
  });
  let answered = false;
  request.once('response', (response) => {
    answered = true;
    readAtMost(response, REFUSAL_BYTES).then((text) => resolve({ status: response.statusCode ?? 0, text }), reject);
  });
  request.once('information', () => request.destroy(new Error('the guest sent an interim answer')));
  request.on('error', reject);
  request.once('close', () => {
    if (!answered) reject(new Error('the guest closed the connection'));
  });
  request.end();
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
