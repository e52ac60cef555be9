// Sends requests with credential, deadline and retries. Every failure becomes a BerthError.
import { BerthError, mayRetry, type BerthErrorFields } from './errors.ts';
import { Deadline, delay } from './time.ts';

/** Options of every call. */
export interface CallOptions {
  /**
   * Aborts the call, which rejects with the signal's reason. The service may still carry out the
   * request.
   */
  signal?: AbortSignal | undefined;
  /** Timeout in milliseconds, including retries. */
  timeoutMs?: number | undefined;
}

/** API key or session token, or a function called for each request. */
export type Credential = string | (() => string | Promise<string>);

interface TransportOptions {
  credential: Credential;
  fetch: typeof globalThis.fetch;
  timeoutMs: number;
  maxRetries: number;
}

/** Settings of a call besides its request. */
export interface CallNotes extends CallOptions {
  /** Appended to the error if the response of a write is lost. */
  whenLost?: string;
  /** Whether a repeated write has no second effect, as with an idempotency key. */
  repeatable?: boolean;
  /** Whether a repeatable write is retried, as reads are. */
  retried?: boolean;
}

interface TransferInit {
  method: string;
  headers?: Readonly<Record<string, string>>;
  body?: Blob;
  signal?: AbortSignal | undefined;
  /** Whether a repetition has no second effect. */
  repeatable?: boolean | undefined;
}

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 8_000;
/** Longer Retry-After values are not waited for. */
const LONGEST_RETRY_AFTER_S = 60;
export const NDJSON = 'application/x-ndjson';
const LOST_RESPONSE_REMEDY = 'The request may have been carried out: check the current state before you retry.';

export class Transport {
  readonly #options: TransportOptions;

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  /** `fetch` of the raw client. Resolves only with successful responses, completely read. */
  fetchFor(notes: CallNotes = {}): typeof globalThis.fetch {
    return async (input, init) => await this.#send(new Request(input, init), notes);
  }

  /**
   * Sends raw bytes, or receives them: resolves with a successful response, unread. Without a
   * timeout and retries.
   */
  async transfer(url: URL, { signal, headers: given = {}, repeatable, ...init }: TransferInit): Promise<Response> {
    const { credential, fetch } = this.#options;
    const what = `${init.method} ${url.pathname}`;
    const headers = {
      ...given,
      authorization: `Bearer ${typeof credential === 'string' ? credential : await credential()}`,
      ...(init.body === undefined ? {} : { 'content-type': 'application/octet-stream' }),
    };
    const reads = init.method === 'GET' || repeatable === true;
    let response: Response;
    try {
      response = await fetch(url, { ...init, headers, ...(signal === undefined ? {} : { signal }) });
    } catch (error) {
      if (signal?.aborted === true) throw signal.reason;
      throw lost(what, error, reads, {});
    }
    if (response.ok) return response;
    throw refused(what, response, await response.text(), reads);
  }

  async #send(request: Request, notes: CallNotes): Promise<Response> {
    const { method } = request;
    const what = `${method} ${new URL(request.url).pathname}`;
    const reads = method === 'GET' || method === 'HEAD';
    const retries = reads || notes.retried === true ? this.#options.maxRetries : 0;
    const text = reads ? '' : await request.text();
    const sent: Sent = { request, what, notes, reads, ...(text === '' ? {} : { body: text }) };
    const deadline = new Deadline(notes.timeoutMs ?? this.#options.timeoutMs, what, [notes.signal, request.signal]);
    try {
      for (let tried = 0; ; tried += 1) {
        const answer = await this.#attempt(sent, deadline.signal);
        if (!(answer instanceof BerthError)) return answer;
        const wait = tried < retries && answer.retryable ? waitBefore(answer, tried) : null;
        if (wait === null || wait >= deadline.leftMs) throw answer;
        await delay(wait, deadline.signal);
      }
    } finally {
      deadline.end();
    }
  }

  /** Sends once. Returns a failure that may be retried. */
  async #attempt({ request, what, notes, reads, body }: Sent, signal: AbortSignal): Promise<Response | BerthError> {
    const { credential } = this.#options;
    const headers = new Headers(request.headers);
    headers.set('authorization', `Bearer ${typeof credential === 'string' ? credential : await credential()}`);
    let response: Response;
    let text: string;
    let broken: unknown;
    try {
      signal.throwIfAborted();
      response = await this.#options.fetch(request.url, {
        method: request.method,
        headers,
        signal,
        ...(body === undefined ? {} : { body }),
      });
      ({ text, broken } = await readText(response));
      // The envelope of a long call that failed after its status, in place of the end of the body.
      if (text.startsWith(' ') && envelopeOf(text) !== undefined)
        return refused(what, response, text, reads || notes.repeatable === true);
      if (broken !== undefined) throw broken;
    } catch (error) {
      if (!signal.aborted) return lost(what, error, reads, notes);
      if (signal.reason instanceof BerthError && !reads) throw lost(what, signal.reason, false, notes);
      throw signal.reason;
    }
    if (response.ok) {
      // The generated client parses JSON only: lines become an array.
      if (response.headers.get('content-type')?.startsWith(NDJSON) === true) {
        const entries = parseJson(`[${text.trimEnd().replaceAll('\n', ',')}]`);
        return entries === undefined ? somethingElse(what, response.status) : Response.json(entries);
      }
      // A proxy or captive portal may respond with 200 too.
      if (text !== '' && !/\bjson\b/.test(response.headers.get('content-type') ?? ''))
        return somethingElse(what, response.status);
      return new Response(text, { status: response.status, headers: response.headers });
    }
    return refused(what, response, text, reads || notes.repeatable === true);
  }
}

/** The body, or the part before the failure `broken`. */
async function readText({ body }: Response): Promise<{ text: string; broken?: unknown }> {
  if (body === null) return { text: '' };
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let text = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return { text: text + decoder.decode() };
      text += decoder.decode(value, { stream: true });
    }
  } catch (broken) {
    return { text, broken };
  }
}

/** A request that may be sent repeatedly. */
interface Sent {
  request: Request;
  /** Method and path, for messages. */
  what: string;
  notes: CallNotes;
  /** Whether the request has no effect. */
  reads: boolean;
  body?: string;
}

/** Failed system calls before a request is sent. */
const CONNECTING: ReadonlySet<unknown> = new Set(['connect', 'getaddrinfo']);
/** Codes of Undici and Bun for the same. */
const NOT_CONNECTED: ReadonlySet<unknown> = new Set(['UND_ERR_CONNECT_TIMEOUT', 'ConnectionRefused']);

/** Reports whether the request was never sent: no connection was made. */
function isUnsent(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, syscall, errors } = error as Error & { code?: unknown; syscall?: unknown; errors?: unknown[] };
  // A host name with several addresses.
  if (Array.isArray(errors) && errors.length > 0) return errors.every(isUnsent);
  return CONNECTING.has(syscall) || NOT_CONNECTED.has(code) || isUnsent(error.cause);
}

/** Error without a response: the outcome is unknown unless the request was never sent. */
function lost(
  what: string,
  cause: unknown,
  reads: boolean,
  { whenLost = LOST_RESPONSE_REMEDY, repeatable = false }: CallNotes,
): BerthError {
  const why = cause instanceof Error ? reasonOf(cause) : String(cause);
  const code = cause instanceof BerthError ? cause.code : 'connection_failed';
  if (isUnsent(cause)) {
    const message = `${what}: no connection: ${why}. The request was not sent`;
    return new BerthError(message, { code, cause, retryable: true, unsent: true });
  }
  const message = code === 'timeout' ? why : `${what}: no response: ${why}`;
  return new BerthError(reads ? message : `${message}. ${whenLost}`, { code, cause, retryable: reads || repeatable });
}

function reasonOf(error: Error): string {
  // `fetch failed` has no detail; the cause has.
  return error.cause instanceof Error && error.cause.message !== '' ? error.cause.message : error.message;
}

/** Error of a response. */
export function refused(
  what: string,
  response: Pick<Response, 'status' | 'headers'>,
  text: string,
  repeatable: boolean,
): BerthError {
  const requestId = response.headers.get('x-request-id') ?? undefined;
  const retryAfter = secondsOf(response.headers.get('retry-after'));
  const { status } = response;
  const error = envelopeOf(text);
  if (error === undefined)
    return somethingElse(what, status, { requestId, retryAfter, retryable: mayRetry(status, '', repeatable) });
  const { code, message, field, turnId } = error;
  const retryable = mayRetry(status, code, repeatable);
  return new BerthError(message, { code, status, requestId, retryAfter, retryable, field, turnId });
}

function somethingElse(what: string, status: number, more: Partial<BerthErrorFields> = {}): BerthError {
  return new BerthError(`${what}: unexpected response with status ${status}, not from a Berth service`, {
    code: 'invalid_answer',
    status,
    ...more,
  });
}

interface Refusal {
  code: string;
  message: string;
  field: string | undefined;
  turnId: string | undefined;
}

function envelopeOf(text: string): Refusal | undefined {
  const { error } = (parseJson(text) ?? {}) as { error?: { [name in keyof Refusal]?: unknown } };
  if (typeof error?.message !== 'string') return undefined;
  const { code, message, field, turnId } = error;
  return {
    code: typeof code === 'string' ? code : 'unknown',
    message,
    field: typeof field === 'string' ? field : undefined,
    turnId: typeof turnId === 'string' ? turnId : undefined,
  };
}

/** Returns undefined for invalid JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Parses `Retry-After`: seconds or a date. */
function secondsOf(header: string | null): number | undefined {
  if (header === null) return undefined;
  const seconds = /^\d+$/.test(header) ? Number(header) : (Date.parse(header) - Date.now()) / 1_000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, Math.ceil(seconds));
}

/** Milliseconds before the next retry, with jitter; null: no retry. */
function waitBefore({ retryAfter }: BerthError, tried: number): number | null {
  const backedOff = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** tried) * (0.5 + Math.random() / 2);
  if (retryAfter === undefined) return backedOff;
  return retryAfter > LONGEST_RETRY_AFTER_S
    ? null
    : Math.max(backedOff, retryAfter * 1_000 + Math.random() * FIRST_WAIT_MS);
}
