// Serves calls over node:http, for host and guest daemon: matches the call, bounds and validates
// the input, runs the handler and forms the response. Imports only Node modules: the guest daemon
// bundles it.
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Duplex, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { CallSpec } from '../calls/define.ts';
import { readBounded, TooLong } from './bounded-body.ts';

export type ServedCall = Pick<CallSpec, 'name' | 'method' | 'path' | 'form' | 'upgrade' | 'upload' | 'requestBytes'> & {
  readonly schemas: { readonly params?: unknown; readonly query?: unknown; readonly body?: unknown };
};

export type Part = 'params' | 'query' | 'body';

/** A request validated against its call. */
export interface Received {
  params: Record<string, string>;
  query: unknown;
  body: unknown;
  /** Present with a call that uploads. */
  upload: Upload | undefined;
  request: IncomingMessage;
  /** Arrival of the headers, by `performance.now()`. */
  receivedMs: number;
  /** Aborts when the caller disconnects. */
  signal: AbortSignal;
}

export interface Upload {
  bytes: number;
  content: Readable;
}

/**
 * Result of a handler, by the form of the call. `json`: the body. `keepalive`: the pending body, or
 * a stream of spaces and body. `bytes`: a stream, and its length if known. `upgrade`: takes over
 * the connection after the 101.
 */
export type Reply =
  | object
  | { result: Promise<unknown> }
  | { stream: Readable; bytes?: number | undefined }
  | ((caller: Duplex) => Promise<void>);

/** A request that violates the protocol. */
export class RequestFault extends Error {
  override readonly name = 'RequestFault';
  readonly kind: 'invalid' | 'body_too_long' | 'upload_too_long';

  constructor(kind: RequestFault['kind'], message: string, cause?: unknown) {
    super(message, { cause });
    this.kind = kind;
  }
}

interface Daemon<C extends ServedCall> {
  readonly calls: readonly C[];
  readonly spaceEveryMs: number;
  /** Throws if the caller may not make this call; undefined: unknown call. */
  admit(request: IncomingMessage, call: C | undefined): void;
  /** Refusal of a request that matches no call. `others`: the known calls. */
  unknownCall(route: string, upgrade: boolean, others: readonly C[]): Error;
  /** Returns the validated part of a request, or throws. */
  check(call: C, part: Part, value: unknown): unknown;
  handle(call: C, received: Received): Promise<Reply>;
  /** Status and JSON body for a failure. */
  refusal(error: unknown, request: IncomingMessage): { status: number; body: object };
  /** Called with the failure of a response in progress. */
  brokeOff(error: unknown): void;
}

export class CallServer<C extends ServedCall> {
  readonly #daemon: Daemon<C>;
  readonly #patterns: readonly { call: C; path: RegExp }[];

  constructor(daemon: Daemon<C>) {
    this.#daemon = daemon;
    this.#patterns = daemon.calls.map((call) => ({ call, path: patternOf(call.path) }));
  }

  /** Never rejects. */
  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.once('close', () => {
      if (!response.writableFinished) gone.abort(new DOMException('the caller closed its connection', 'AbortError'));
    });
    // The reader of the body sees this failure too.
    request.on('error', () => undefined);
    try {
      const { call, received } = await this.#receive(request, false, gone.signal);
      await respond(response, call, await this.#daemon.handle(call, received), this.#daemon.spaceEveryMs);
    } catch (error) {
      if (gone.signal.aborted || response.destroyed) return;
      if (response.headersSent) {
        this.#daemon.brokeOff(error);
        // A truncated response must not look complete.
        response.destroy();
        return;
      }
      await dropBody(request, response);
      const { status, body } = this.#daemon.refusal(error, request);
      sendJson(response, status, body);
    }
  }

  /** Resolves when the stream is closed. Never rejects. */
  async serveUpgrade(request: IncomingMessage, caller: Duplex, head: Buffer): Promise<void> {
    const gone = new AbortController();
    caller.once('close', () => gone.abort(new DOMException('the caller closed its connection', 'AbortError')));
    // Until the connection's owner listens for errors.
    caller.on('error', () => undefined);
    if (head.length > 0) caller.unshift(head);
    try {
      const { call, received } = await this.#receive(request, true, gone.signal);
      const carry = (await this.#daemon.handle(call, received)) as (caller: Duplex) => Promise<void>;
      caller.write(`HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: ${call.upgrade}\r\n\r\n`);
      await carry(caller);
    } catch (error) {
      if (caller.destroyed) return;
      const { status, body } = this.#daemon.refusal(error, request);
      const text = JSON.stringify(body);
      caller.end(
        `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json\r\n` +
          `content-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`,
        () => caller.destroy(),
      );
    }
  }

  async #receive(
    request: IncomingMessage,
    upgrades: boolean,
    signal: AbortSignal,
  ): Promise<{ call: C; received: Received }> {
    const receivedMs = performance.now();
    const daemon = this.#daemon;
    const { method = '', url = '/' } = request;
    const [path = '/', query = ''] = url.split('?', 2);
    const found = this.#find(method, path, upgrades);
    daemon.admit(request, found?.call);
    if (found === undefined) {
      const upgrade = this.#find(method, path, true)?.call.upgrade;
      if (upgrade !== undefined) {
        throw new RequestFault(
          'invalid',
          `${path} is a stream: send the headers Connection: Upgrade and Upgrade: ${upgrade}`,
        );
      }
      const others = daemon.calls.filter(({ form }) => (form === 'upgrade') === upgrades);
      throw daemon.unknownCall(`${method} ${path}`, upgrades, others);
    }
    const { call, params } = found;
    if (upgrades && request.headers.upgrade?.toLowerCase() !== call.upgrade)
      throw new RequestFault('invalid', `this stream requires Upgrade: ${call.upgrade}`);

    const check = async (part: Part, value: () => unknown): Promise<unknown> =>
      call.schemas[part] === undefined ? undefined : daemon.check(call, part, await value());
    await check('params', () => params);
    const received = {
      params,
      query: await check('query', () => Object.fromEntries(new URLSearchParams(query))),
      upload: call.upload === true ? uploadOf(request, call) : undefined,
      body: await check('body', () => readJson(request, call.requestBytes ?? 0)),
      request,
      receivedMs,
      signal,
    };
    return { call, received };
  }

  #find(method: string, path: string, upgrades: boolean): { call: C; params: Record<string, string> } | undefined {
    for (const { call, path: pattern } of this.#patterns) {
      if (call.method !== method || (call.form === 'upgrade') !== upgrades) continue;
      const match = pattern.exec(path);
      if (match !== null) return { call, params: { ...match.groups } };
    }
    return undefined;
  }
}

/** `{name}` in a path matches anything but a slash. */
function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`);
}

async function readJson(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  try {
    const { bytes, whole } = await readBounded(request, maxBytes);
    if (!whole) throw new RequestFault('invalid', 'the body was interrupted');
    return JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    // The message of a SyntaxError quotes the body, which may hold a secret.
    if (error instanceof SyntaxError) throw new RequestFault('invalid', 'the body is not JSON', error);
    if (error instanceof TooLong) throw new RequestFault('body_too_long', error.message, error);
    throw error;
  }
}

function uploadOf(request: IncomingMessage, { requestBytes = 0 }: ServedCall): Upload {
  const bytes = Number(request.headers['content-length'] ?? Number.NaN);
  if (!Number.isInteger(bytes)) throw new RequestFault('invalid', 'a write needs a Content-Length');
  if (bytes > requestBytes)
    throw new RequestFault('upload_too_long', `the file exceeds the limit of ${requestBytes} bytes`);
  return { bytes, content: request };
}

/**
 * Drains and drops the rest of a body, within the server's time for a request: otherwise a caller
 * that still sends would not see the response. A connection that closes after the response is kept
 * open until the body has arrived.
 */
async function dropBody(request: IncomingMessage, response: ServerResponse): Promise<void> {
  request.unpipe();
  request.resume();
  if (response.shouldKeepAlive || request.complete || request.destroyed) return;
  await new Promise<void>((resolve) => {
    request.once('end', resolve);
    request.once('close', resolve);
  });
}

async function respond(
  response: ServerResponse,
  { form }: ServedCall,
  reply: Reply,
  spaceEveryMs: number,
): Promise<void> {
  if ('stream' in reply) {
    const { stream, bytes } = reply;
    response.writeHead(200, {
      'content-type': form === 'bytes' ? 'application/octet-stream' : 'application/json',
      ...(bytes === undefined ? {} : { 'content-length': bytes }),
    });
    if (form === 'keepalive') response.flushHeaders();
    await (bytes === undefined ? pipeline(stream, response) : pipeline(stream, exactly(bytes), response));
  } else if (form === 'keepalive') {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    const spaces = setInterval(() => response.write(' '), spaceEveryMs);
    try {
      response.end(JSON.stringify(await (reply as { result: Promise<unknown> }).result));
    } finally {
      clearInterval(spaces);
    }
  } else {
    sendJson(response, 200, reply);
  }
}

/** Fails when the source ends early. */
export function exactly(bytes: number): (source: AsyncIterable<Buffer>) => AsyncGenerator<Buffer> {
  return async function* (source) {
    let sent = 0;
    for await (const chunk of source) {
      sent += chunk.length;
      yield chunk;
    }
    if (sent !== bytes) throw new Error(`received ${sent} bytes, not ${bytes}`);
  };
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  const text = Buffer.from(JSON.stringify(body));
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': text.length });
  response.end(text);
}
