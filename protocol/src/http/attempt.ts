// A call in flight over node:http: its request, deadline and errors.
import http from 'node:http';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { messageOf } from '@berth/os/errors.ts';
import { deadlineOf, pathOf, type CallSpec } from '../calls/define.ts';
import { readOrDestroy, TooLong } from './bounded-body.ts';
import type { CallOptions, CallRequest, FailureKind, Peer } from './peer.ts';
import type { Upload } from './serve.ts';

const HEADER_BYTES = 8_192;
const REFUSAL_BYTES = 16_384;

export class Attempt {
  readonly call: CallSpec;
  readonly #peer: Peer;
  readonly #path: string;
  readonly #what: string;
  readonly #payload: Buffer | Upload | undefined;
  readonly #headers: CallRequest<CallSpec>['headers'];
  readonly #finished = new AbortController();
  readonly #options: CallOptions;
  readonly #timer: NodeJS.Timeout;
  readonly #onAbort = (): void => this.#finished.abort(asError(this.#options.signal?.reason));

  constructor(peer: Peer, call: CallSpec, request: CallRequest<CallSpec>, options: CallOptions) {
    const { vmId, epoch, upload, headers, params, query, body } = request as CallRequest<CallSpec> &
      Record<string, unknown>;
    this.call = call;
    this.#peer = peer;
    const path = pathOf(call, peer.side).replaceAll(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(String({ vmId, ...(params as object | undefined) }[name])),
    );
    const fence = epoch === undefined ? {} : { epoch };
    const search = new URLSearchParams({
      ...(query as Record<string, string> | undefined),
      ...(call.body === undefined && epoch !== undefined ? { epoch: String(epoch) } : {}),
    }).toString();
    this.#path = search === '' ? path : `${path}?${search}`;
    this.#what = `${call.method} ${path}`;
    this.#payload =
      upload ??
      (call.body === undefined
        ? undefined
        : Buffer.from(JSON.stringify({ ...(body as object | undefined), ...fence })));
    this.#headers = headers;
    this.#options = options;
    options.signal?.addEventListener('abort', this.#onAbort, { once: true });
    if (options.signal?.aborted === true) this.#onAbort();
    const deadlineMs = options.deadlineMs ?? deadlineOf(call, peer.side, body);
    this.#timer = setTimeout(() => this.#finished.abort(peer.late(this.#what, deadlineMs)), deadlineMs);
  }

  /** Runs the whole call. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.failure(error);
    } finally {
      this.end();
    }
  }

  /** Detaches the deadline and the signal from the call. */
  end(): void {
    clearTimeout(this.#timer);
    this.#options.signal?.removeEventListener('abort', this.#onAbort);
  }

  /** Resolves with the response once its headers have arrived. */
  async send(): Promise<http.IncomingMessage> {
    const { freshAgent } = this.#peer;
    try {
      return await this.#exchange(this.#peer.agentOf(this.call));
    } catch (error) {
      // The pooled connection was closed while idle: nothing of the request was read.
      const isRetried = error instanceof StaleConnection && this.call.repeatable === true;
      if (!isRetried || freshAgent === undefined) throw error;
      return this.#exchange(freshAgent);
    }
  }

  async upgrade(): Promise<{ stream: Duplex } | { response: http.IncomingMessage }> {
    const { target } = this.#peer;
    this.#finished.signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<
      { stream: Duplex } | { response: http.IncomingMessage }
    >();
    const request = http.request({
      path: this.#path,
      createConnection: () =>
        connect({
          ...('socketPath' in target ? { path: target.socketPath } : { ...target, noDelay: true }),
          allowHalfOpen: true,
        }),
      maxHeaderSize: HEADER_BYTES,
      headers: {
        ...this.#headers,
        host: this.#peer.side,
        connection: 'Upgrade',
        upgrade: this.call.upgrade,
        ...this.#authorization(),
      },
    });
    const onAbort = (): void => {
      reject(this.#finished.signal.reason);
      request.destroy();
    };
    this.#finished.signal.addEventListener('abort', onAbort, { once: true });
    request.once('upgrade', (response, stream, head) => {
      if (response.headers.upgrade !== this.call.upgrade) {
        stream.destroy();
        reject(new Error('the peer switched to another protocol'));
        return;
      }
      this.#finished.signal.removeEventListener('abort', onAbort);
      // Until the stream's owner listens for errors.
      stream.on('error', () => undefined);
      if (head.length > 0) stream.unshift(head);
      resolve({ stream });
    });
    request.once('response', (response) => resolve({ response }));
    refuseInterim(request, reject);
    request.end();
    return promise;
  }

  async refusal(response: http.IncomingMessage): Promise<Error> {
    const status = response.statusCode ?? 0;
    const { bytes } = await readOrDestroy(response, REFUSAL_BYTES).catch((error: unknown) => {
      throw this.#failed('invalid', `status ${status}: ${messageOf(error)}`, error);
    });
    return (
      this.refusalIn(status, bytes.toString('utf8')) ??
      this.#failed('invalid', `status ${status} without a known error`)
    );
  }

  refusalIn(status: number, text: string): Error | undefined {
    return this.#peer.refusal(this.call, this.#what, status, text);
  }

  invalid(message: string): Error {
    return this.#failed('invalid', message);
  }

  /** Converts a failure to the error for the caller. */
  failure(error: unknown): Error {
    if (this.#finished.signal.aborted) return this.#finished.signal.reason as Error;
    if (this.#peer.isFailure(error)) return error;
    return this.#failed(error instanceof TooLong ? 'invalid' : 'broken', messageOf(error), error);
  }

  #failed(kind: FailureKind, message: string, cause?: unknown): Error {
    return this.#peer.failure(kind, this.#what, message, cause);
  }

  #authorization(): Record<string, string> {
    const authorization = this.#peer.authorization();
    return authorization === undefined ? {} : { authorization };
  }

  #exchange(agent: http.Agent): Promise<http.IncomingMessage> {
    const payload = this.#payload;
    const { signal } = this.#finished;
    if (signal.aborted) return Promise.reject(signal.reason as Error);
    return new Promise((resolve, reject) => {
      const request = http.request({
        ...this.#peer.target,
        method: this.call.method,
        path: this.#path,
        agent,
        maxHeaderSize: HEADER_BYTES,
        headers: {
          ...this.#authorization(),
          ...(payload === undefined
            ? {}
            : {
                'content-type': Buffer.isBuffer(payload) ? 'application/json' : 'application/octet-stream',
                'content-length': Buffer.isBuffer(payload) ? payload.length : payload.bytes,
              }),
        },
      });
      // Also aborts while the response arrives. The option `signal` costs more.
      signal.addEventListener('abort', () => request.destroy(signal.reason as Error), { once: true });
      request.once('response', resolve);
      request.on('error', (error: NodeJS.ErrnoException) => {
        const stale = request.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
        reject(stale ? new StaleConnection(error.message, { cause: error }) : error);
      });
      refuseInterim(request, reject);
      if (payload === undefined || Buffer.isBuffer(payload)) request.end(payload);
      // The content belongs to the caller: never destroyed, nor read to its end.
      else payload.content.pipe(request);
    });
  }
}

/** A pooled connection was closed before the request was read. */
class StaleConnection extends Error {}

/**
 * Daemons send no interim responses (1xx), and Node does not bound their number. A hostile peer can
 * also end an exchange without response or error, as with an unsolicited upgrade.
 */
function refuseInterim(request: http.ClientRequest, reject: (error: Error) => void): void {
  request.once('information', () => request.destroy(new Error('the peer sent an interim response')));
  request.on('error', reject);
  request.once('close', () => reject(new Error('the peer closed the connection')));
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason), { cause: reason });
}
