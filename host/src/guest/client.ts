// HTTP client to one guest daemon. The guest is hostile: every answer is bounded in bytes and time,
// parsed by its schema, and never followed elsewhere. One instance for each VM; its connections are
// kept open, because setting one up costs milliseconds in an emulated guest.
import { request as httpRequest, type IncomingMessage } from 'node:http';
import type { Duplex, Readable } from 'node:stream';
import {
  CLONE_ANSWER_MAX_BYTES,
  EXEC_ANSWER_MAX_BYTES,
  guestError,
  guestHealth,
  type GuestClone,
  type GuestExecRequest,
  type GuestHealth,
} from '@berth/protocol/guest.ts';
import { parseJson } from '@berth/protocol/json-text.ts';
import type { z } from 'zod';
import { HostError, messageOf } from '../vm/host-error.ts';
import type { GuestEndpoint } from '../vm/driver.ts';
import { atMost, readAtMost } from '@berth/os/bounded-body.ts';
import { GuestAgent } from './agent.ts';
import { dial } from './dial.ts';
import { askForStream } from './stream.ts';

/**
 * Beyond the own time of a command or clone: connection, start of the shell in a slow guest, and
 * the answer itself. Less than the control plane grants.
 */
export const EXEC_GRACE_MS = 15_000;
const SMALL_ANSWER_BYTES = 16_384;
const HEADER_BYTES = 8_192;

export interface CallOptions {
  signal: AbortSignal;
  deadlineMs: number;
}

export interface JsonCall<T> extends CallOptions {
  method: 'GET' | 'POST';
  path: string;
  body?: unknown;
  answer: z.ZodType<T>;
}

export interface StreamCall extends CallOptions {
  method: 'GET' | 'POST' | 'PUT';
  path: string;
  /** Sent as JSON. */
  body?: unknown;
  /**
   * Sent as it comes, instead of `body`. It stays the caller's: it is neither destroyed nor read to
   * its end when the call ends before.
   */
  upload?: Upload;
  /** Of the answer. */
  maxBytes: number;
  /** What a refusal is; {@link GuestRefusal} by default. */
  refusal?: (status: number, text: string) => HostError | null;
}

export interface Upload {
  bytes: number;
  content: Readable;
}

/** A call of a guest that answered properly, but with a refusal. */
export class GuestRefusal extends HostError {
  readonly status: number;

  constructor(status: number, message: string) {
    super('guest_unreachable', message);
    this.status = status;
  }
}

export class GuestClient {
  readonly endpoint: GuestEndpoint;
  readonly #agent = new GuestAgent();
  #secret: string | null;
  /** Why it was closed. */
  #closed: HostError | null = null;

  constructor(endpoint: GuestEndpoint, secret: string | null = null) {
    this.endpoint = endpoint;
    this.#secret = secret;
  }

  /** From now on calls carry this secret. */
  useSecret(secret: string): void {
    this.#secret = secret;
  }

  /**
   * Waits until the guest daemon accepts a connection, unless one is open already; the next call
   * uses that one.
   */
  async reach(options: CallOptions): Promise<void> {
    if (this.#agent.hasOpen()) return;

    const time = new CallTime(options, this);
    try {
      this.#agent.lend(await dial(this.endpoint, time.signal));
    } catch (error) {
      throw time.failure(error, 'no connection to the guest');
    }
  }

  async health(options: CallOptions): Promise<GuestHealth> {
    return this.json({ ...options, method: 'GET', path: '/health', answer: guestHealth });
  }

  /**
   * One small call. Rejects with {@link GuestRefusal} for a status other than 200, with
   * `guest_unreachable` for anything else that went wrong.
   */
  async json<T>(call: JsonCall<T>): Promise<T> {
    const time = new CallTime(call, this);
    const what = `${call.method} ${call.path}`;
    let text: string;
    try {
      const response = await this.#send(call.method, call.path, call.body, time.signal);
      text = await readAtMost(response, SMALL_ANSWER_BYTES);
      if (response.statusCode !== 200) throw refusal(what, response.statusCode ?? 0, text);
    } catch (error) {
      throw time.failure(error, what);
    }
    const parsed = call.answer.safeParse(parseJson(text));
    if (!parsed.success) throw new HostError('guest_unreachable', `${what}: the guest's answer is not of its protocol`);

    return parsed.data;
  }

  /**
   * Runs a command: a {@link stream} of its JSON answer. Destroying the stream ends the command.
   */
  async exec(command: GuestExecRequest, signal: AbortSignal): Promise<Readable> {
    // Headers have no deadline of their own: a guest that starts fifty shells at once may take long
    // to send them.
    const deadlineMs = command.timeoutSeconds * 1_000 + EXEC_GRACE_MS;
    const maxBytes = EXEC_ANSWER_MAX_BYTES + command.timeoutSeconds;
    return this.stream({ method: 'POST', path: '/exec', body: command, maxBytes, signal, deadlineMs });
  }

  /**
   * Clones a repository. Resolves and fails as {@link exec} does; destroying the stream leaves the
   * clone to whoever asks again soon.
   */
  async clone(clone: GuestClone, signal: AbortSignal): Promise<Readable> {
    const deadlineMs = clone.timeoutSeconds * 1_000 + EXEC_GRACE_MS;
    const maxBytes = CLONE_ANSWER_MAX_BYTES + clone.timeoutSeconds;
    return this.stream({ method: 'POST', path: '/clone', body: clone, maxBytes, signal, deadlineMs });
  }

  /**
   * One call whose answer, or body, is too long to be held. Resolves when the guest has accepted
   * it, with its answer as a stream of bounded length; the stream fails with a {@link HostError}
   * when the guest breaks off, sends too much or passes the call's time. Destroying the stream ends
   * the call.
   */
  async stream(call: StreamCall): Promise<Readable> {
    const { method, path, body, upload, maxBytes } = call;
    const time = new CallTime(call, this);
    const what = `${method} ${path.replace(/\?.*/s, '')}`;
    try {
      // The signal goes on ending the exchange while the answer comes in.
      const response = await this.#send(method, path, body, time.signal, upload);
      if (response.statusCode !== 200) {
        const text = await readAtMost(response, SMALL_ANSWER_BYTES);
        throw call.refusal?.(response.statusCode ?? 0, text) ?? refusal(what, response.statusCode ?? 0, text);
      }
      return atMost(response, maxBytes, (error) => time.failure(error, what));
    } catch (error) {
      throw time.failure(error, what);
    }
  }

  /**
   * A raw stream, which can be half closed. Rejects with {@link GuestRefusal}, or with
   * `guest_unreachable`. It is the caller's to close: it outlives this client, and the deadline is
   * that of its opening.
   */
  async openStream(path: string, protocol: string, options: CallOptions): Promise<Duplex> {
    const time = new CallTime(options, this);
    const what = `GET ${path.replace(/\?.*/s, '')}`;
    try {
      const answer = await askForStream(this.endpoint, { path, protocol, secret: this.#secret }, time.signal);
      if ('stream' in answer) return answer.stream;

      throw refusal(what, answer.status, answer.text);
    } catch (error) {
      throw time.failure(error, what);
    }
  }

  /** Why it was closed; null while it is not, or when nobody said. */
  get closed(): HostError | null {
    return this.#closed;
  }

  /** Closes every connection; calls under way fail, with `why` when it is given. */
  close(why: HostError | null = null): void {
    this.#closed ??= why;
    this.#agent.destroy();
  }

  async #send(
    method: string,
    path: string,
    body: unknown,
    signal: AbortSignal,
    upload?: Upload,
  ): Promise<IncomingMessage> {
    const payload = body === undefined ? null : Buffer.from(JSON.stringify(body));
    return new Promise((resolve, reject) => {
      const request = httpRequest({
        host: this.endpoint.address,
        port: this.endpoint.port,
        method,
        path,
        agent: this.#agent,
        signal,
        maxHeaderSize: HEADER_BYTES,
        headers: {
          accept: 'application/json',
          ...(this.#secret === null ? {} : { authorization: `Bearer ${this.#secret}` }),
          ...(payload === null ? {} : { 'content-type': 'application/json', 'content-length': payload.length }),
          ...(upload === undefined
            ? {}
            : { 'content-type': 'application/octet-stream', 'content-length': upload.bytes }),
        },
      });
      request.once('response', resolve);
      request.on('error', reject);
      // The daemon never sends an interim answer (1xx), and nothing else bounds how many there are.
      request.once('information', () => request.destroy(new Error('the guest sent an interim answer')));
      // A hostile guest can end the exchange in ways that are neither (an upgrade nobody asked
      // for).
      request.once('close', () => reject(new Error('the guest closed the connection')));
      if (upload === undefined) request.end(payload ?? undefined);
      else upload.content.pipe(request);
    });
  }
}

/** How long one call may take, and what its failure is called. */
class CallTime {
  readonly signal: AbortSignal;
  readonly #options: CallOptions;
  readonly #client: Pick<GuestClient, 'closed'>;
  readonly #deadline: AbortSignal;

  constructor(options: CallOptions, client: Pick<GuestClient, 'closed'>) {
    this.#options = options;
    this.#client = client;
    this.#deadline = AbortSignal.timeout(options.deadlineMs);
    this.signal = AbortSignal.any([options.signal, this.#deadline]);
  }

  /**
   * The caller's own abort stays what it is, and so does the close of the client; everything else
   * is the guest's.
   */
  failure(error: unknown, what: string): Error {
    const { signal, deadlineMs } = this.#options;
    if (signal.aborted) return signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason));

    if (error instanceof HostError) return error;

    if (this.#client.closed !== null) return this.#client.closed;

    const message = this.#deadline.aborted ? `no answer within ${deadlineMs / 1_000} s` : messageOf(error);
    return new HostError('guest_unreachable', `${what}: ${message}`, { cause: error });
  }
}

function refusal(what: string, status: number, text: string): GuestRefusal {
  const parsed = guestError.safeParse(parseJson(text));
  return new GuestRefusal(
    status,
    `${what}: the guest answered ${status}${parsed.success ? `: ${parsed.data.error.message}` : ''}`,
  );
}
