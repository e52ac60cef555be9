// One HTTP exchange with a host: bytes out, bytes in, within a deadline and a length. Knows no verb
// and parses nothing.
import http from 'node:http';
import { HostError } from './error.ts';
import { GatheredBytes } from './gathered-bytes.ts';

export type Target = { socketPath: string } | { host: string; port: number };

export interface Payload {
  type: string;
  bytes: Buffer;
}

export interface Exchange {
  target: Target;
  agent: http.Agent;
  token: string;
  method: string;
  path: string;
  payload: Payload | undefined;
  deadlineMs: number;
  /** Of the answer. */
  maxBytes: number;
  /** What is asked of whom, for messages. */
  where: string;
}

export interface Exchanged {
  status: number;
  body: Buffer;
  /** False when the connection broke before the end of the body. */
  whole: boolean;
}

/** A pooled connection was closed by the host before it read the request. */
export class StaleConnectionError extends Error {}

/** `unix:/path` or `http://address:port`. */
export function targetOf(url: string): Target {
  if (url.startsWith('unix:/')) return { socketPath: url.slice('unix:'.length) };
  const parsed = URL.parse(url);
  if (parsed?.protocol !== 'http:')
    throw new TypeError(`a host's address is unix:/path or http://address:port, not ${url}`);
  return { host: parsed.hostname.replace(/^\[(.*)\]$/, '$1'), port: parsed.port === '' ? 80 : Number(parsed.port) };
}

/**
 * Rejects with {@link HostError}, {@link StaleConnectionError}, or the reason of the signal, which
 * ends the call.
 */
export function exchange(call: Exchange, signal: AbortSignal | undefined): Promise<Exchanged> {
  const { target, agent, token, method, path, payload, deadlineMs, maxBytes, where } = call;
  if (signal?.aborted) return Promise.reject(asError(signal.reason));
  return new Promise((resolve, reject) => {
    const outgoing = http.request({
      ...target,
      method,
      path,
      agent,
      headers: {
        authorization: `Bearer ${token}`,
        ...(payload === undefined ? {} : { 'content-type': payload.type, 'content-length': payload.bytes.byteLength }),
      },
    });
    let answered = false;
    const settle = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    };
    const fail = (error: Error): void => {
      settle();
      outgoing.destroy();
      reject(error);
    };
    const timer = setTimeout(
      () => fail(new HostError('host_timeout', `no answer to ${where} within ${deadlineMs} ms`)),
      deadlineMs,
    );
    const onAbort = (): void => fail(asError(signal?.reason));
    signal?.addEventListener('abort', onAbort, { once: true });
    outgoing.on('error', (error: NodeJS.ErrnoException) => {
      if (!answered && outgoing.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE')) {
        fail(new StaleConnectionError());
        return;
      }
      fail(new HostError('host_unreachable', `${where}: ${error.message}`, { cause: error }));
    });
    outgoing.on('response', (response) => {
      answered = true;
      readBody(response, maxBytes).then(
        ({ body, whole }) => {
          settle();
          resolve({ status: response.statusCode ?? 0, body, whole });
        },
        (error: unknown) => fail(asError(error)),
      );
    });
    outgoing.end(payload?.bytes);
  });
}

/** Reads at most `maxBytes`. */
function readBody(response: http.IncomingMessage, maxBytes: number): Promise<Omit<Exchanged, 'status'>> {
  return new Promise((resolve, reject) => {
    const gathered = new GatheredBytes();
    response.on('data', (chunk: Buffer) => {
      if (gathered.length + chunk.byteLength <= maxBytes) {
        gathered.add(chunk);
        return;
      }
      reject(new HostError('invalid_answer', `the answer is longer than ${maxBytes} bytes`));
      response.destroy();
    });
    const settle = (whole: boolean) => (): void => resolve({ body: gathered.whole(), whole });
    response.on('end', settle(true));
    // After 'error' or a premature close what came so far may still hold the error envelope that
    // explains it.
    response.on('error', settle(false));
    response.on('close', settle(false));
  });
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason), { cause: reason });
}
