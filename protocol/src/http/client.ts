// Sends calls to a daemon over node:http, for API and host daemon, within the call's deadline,
// limits and schema. Follows no redirects.
import type { Duplex, Readable } from 'node:stream';
import type { CallSpec, ResponseOf } from '../calls/define.ts';
import { parseJson } from '../json-text.ts';
import { Attempt } from './attempt.ts';
import { atMost, readOrDestroy, TooLong } from './bounded-body.ts';
import type { CallOptions, CallRequest, Peer } from './peer.ts';

export class CallClient {
  readonly #peer: Peer;

  constructor(peer: Peer) {
    this.#peer = peer;
  }

  /** Resolves with the response of a JSON call. */
  async call<C extends CallSpec>(call: C, request: CallRequest<C>, options: CallOptions = {}): Promise<ResponseOf<C>> {
    const attempt = new Attempt(this.#peer, call, request, options);
    return attempt.run(async () => {
      const text = (await this.#readAll(attempt)).toString('utf8');
      const json = parseJson(text);
      if (json === undefined) throw attempt.invalid('the response violates its protocol: not JSON');
      const parsed = call.response?.safeParse(json);
      if (parsed?.success !== true) {
        const issue = parsed?.error.issues[0];
        throw attempt.invalid(`the response violates its protocol: ${issue?.path.join('.')}: ${issue?.message}`);
      }
      if (call.confirms?.(parsed.data as never, request.upload?.bytes ?? 0) === false)
        throw attempt.invalid('the response violates its protocol: it belongs to another request');
      return parsed.data as ResponseOf<C>;
    });
  }

  /** Resolves with the whole response. */
  async bytes<C extends CallSpec>(call: C, request: CallRequest<C>, options: CallOptions = {}): Promise<Buffer> {
    const attempt = new Attempt(this.#peer, call, request, options);
    return attempt.run(() => this.#readAll(attempt));
  }

  /**
   * Resolves with the response stream when the peer has accepted the call. The stream fails when
   * the peer breaks off, exceeds the limit or passes the deadline. Destroying the stream ends the
   * call.
   */
  async stream<C extends CallSpec>(call: C, request: CallRequest<C>, options: CallOptions = {}): Promise<Readable> {
    const attempt = new Attempt(this.#peer, call, request, options);
    try {
      const response = await attempt.send();
      if (response.statusCode !== 200) throw await attempt.refusal(response);
      const stream = atMost(response, call.responseBytes ?? 0, (error) =>
        attempt.failure(error instanceof TooLong ? error : brokenOff(error)),
      );
      stream.once('close', () => attempt.end());
      return stream;
    } catch (error) {
      attempt.end();
      throw attempt.failure(error);
    }
  }

  /** Resolves with a raw stream, which can be half-closed. The caller closes it. */
  async open<C extends CallSpec>(call: C, request: CallRequest<C>, options: CallOptions = {}): Promise<Duplex> {
    const attempt = new Attempt(this.#peer, call, request, options);
    return attempt.run(async () => {
      const opened = await attempt.upgrade();
      if ('stream' in opened) return opened.stream;
      throw await attempt.refusal(opened.response);
    });
  }

  async #readAll(attempt: Attempt): Promise<Buffer> {
    const { call } = attempt;
    const response = await attempt.send();
    if (response.statusCode !== 200) throw await attempt.refusal(response);
    const { bytes, whole } = await readOrDestroy(response, call.responseBytes ?? 0);
    if (whole) return bytes;
    // A keep-alive response can only fail after its headers.
    const refused = call.form === 'keepalive' ? attempt.refusalIn(200, bytes.toString('utf8')) : undefined;
    throw refused ?? brokenOff();
  }
}

function brokenOff(cause?: unknown): Error {
  return new Error('the connection closed in the middle of the response', { cause });
}
