// How a request reaches the service: with the key, within a deadline, and again where nothing is
// done twice by it. Every failure becomes a BerthError.
import { BerthError, mayRetry, type BerthErrorFields } from './errors.ts';
import { Deadline, delay } from './time.ts';

/** What every call takes. */
export interface CallOptions {
  /**
   * Ends the call; it then rejects with the signal's reason. What was begun may be carried out all
   * the same.
   */
  signal?: AbortSignal | undefined;
  /** Longest the call may take in all, in milliseconds, tries and waiting included. */
  timeoutMs?: number | undefined;
}

/** An API key or session token, or what gives it for each request. */
export type Credential = string | (() => string | Promise<string>);

interface TransportOptions {
  credential: Credential;
  fetch: typeof globalThis.fetch;
  timeoutMs: number;
  maxRetries: number;
}

/** What is known of a call besides its request. */
export interface CallNotes extends CallOptions {
  /** Said in an error when a write was sent and its answer lost. */
  whenLost?: string;
  /** Whether it may be sent again although it writes: the service knows it again. */
  repeatable?: boolean;
}

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 8_000;
/** A service that asks for more than this is not waited for. */
const LONGEST_RETRY_AFTER_S = 60;
const WHEN_LOST = 'The request may have been carried out: check the current state before you retry.';

export class Transport {
  readonly #options: TransportOptions;

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  /** A `fetch` for the raw client. Resolves with successful answers alone, read to their end. */
  fetchFor(notes: CallNotes = {}): typeof globalThis.fetch {
    return async (input, init) => await this.#send(new Request(input, init), notes);
  }

  async #send(request: Request, notes: CallNotes): Promise<Response> {
    const { method } = request;
    const what = `${method} ${new URL(request.url).pathname}`;
    const repeatable = method === 'GET' || method === 'HEAD';
    const text = repeatable ? '' : await request.text();
    const sent: Sent = { request, what, notes, reads: repeatable, ...(text === '' ? {} : { body: text }) };
    const deadline = new Deadline(notes.timeoutMs ?? this.#options.timeoutMs, what, [notes.signal, request.signal]);
    try {
      for (let tried = 0; ; tried += 1) {
        const answer = await this.#try(sent, deadline.signal);
        if (!(answer instanceof BerthError)) return answer;
        const wait =
          repeatable && tried < this.#options.maxRetries && answer.retryable ? waitBefore(answer, tried) : null;
        if (wait === null || wait >= deadline.leftMs) throw answer;
        await delay(wait, deadline.signal);
      }
    } finally {
      deadline.end();
    }
  }

  /** One try: its answer, or a failure after which another may follow. */
  async #try({ request, what, notes, reads, body }: Sent, signal: AbortSignal): Promise<Response | BerthError> {
    const { credential } = this.#options;
    const headers = new Headers(request.headers);
    headers.set('authorization', `Bearer ${typeof credential === 'string' ? credential : await credential()}`);
    let response: Response;
    let text: string;
    try {
      signal.throwIfAborted();
      response = await this.#options.fetch(request.url, {
        method: request.method,
        headers,
        signal,
        ...(body === undefined ? {} : { body }),
      });
      text = await response.text();
    } catch (error) {
      if (!signal.aborted) return lost(what, error, reads, notes);
      if (signal.reason instanceof BerthError && !reads) throw lost(what, signal.reason, false, notes);
      throw signal.reason;
    }
    if (response.ok) {
      // A page of a proxy or of a network's sign-in has a good status too.
      if (text !== '' && !/\bjson\b/.test(response.headers.get('content-type') ?? ''))
        return somethingElse(what, response.status);
      return new Response(text, { status: response.status, headers: response.headers });
    }
    return refused(what, response, text, reads || notes.repeatable === true);
  }
}

/** A request as it is sent, once or more. */
interface Sent {
  request: Request;
  /** In words. */
  what: string;
  notes: CallNotes;
  /** Whether it changes nothing. */
  reads: boolean;
  body?: string;
}

/** No answer: nobody knows what came of it. */
function lost(
  what: string,
  cause: unknown,
  reads: boolean,
  { whenLost = WHEN_LOST, repeatable = false }: CallNotes,
): BerthError {
  const why = cause instanceof Error ? reasonOf(cause) : String(cause);
  const code = cause instanceof BerthError ? cause.code : 'connection_failed';
  const message = code === 'timeout' ? why : `${what}: no response: ${why}`;
  return new BerthError(reads ? message : `${message}. ${whenLost}`, { code, cause, retryable: reads || repeatable });
}

function reasonOf(error: Error): string {
  // `fetch failed` says nothing; its cause does.
  return error.cause instanceof Error && error.cause.message !== '' ? error.cause.message : error.message;
}

/** The failure that a response stands for. */
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
  const { code, message } = error;
  return new BerthError(message, {
    code,
    status,
    requestId,
    retryAfter,
    retryable: mayRetry(status, code, repeatable),
  });
}

function somethingElse(what: string, status: number, more: Partial<BerthErrorFields> = {}): BerthError {
  return new BerthError(`${what}: unexpected response with status ${status}, not from a Berth service`, {
    code: 'invalid_answer',
    status,
    ...more,
  });
}

function envelopeOf(text: string): { code: string; message: string } | undefined {
  const { error } = (parseJson(text) ?? {}) as { error?: { code?: unknown; message?: unknown } };
  return typeof error?.message === 'string'
    ? { code: typeof error.code === 'string' ? error.code : 'unknown', message: error.message }
    : undefined;
}

/** Undefined for what is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** `Retry-After`: seconds, or a date. */
function secondsOf(header: string | null): number | undefined {
  if (header === null) return undefined;
  const seconds = /^\d+$/.test(header) ? Number(header) : (Date.parse(header) - Date.now()) / 1_000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, Math.ceil(seconds));
}

/**
 * Milliseconds to wait before the next try, so that many clients do not come back at once; null: it
 * is not waited for.
 */
function waitBefore({ retryAfter }: BerthError, tried: number): number | null {
  const backedOff = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** tried) * (0.5 + Math.random() / 2);
  if (retryAfter === undefined) return backedOff;
  return retryAfter > LONGEST_RETRY_AFTER_S
    ? null
    : Math.max(backedOff, retryAfter * 1_000 + Math.random() * FIRST_WAIT_MS);
}
