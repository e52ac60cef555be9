// One request and its response, with back-pressure in both directions. Resolves when both have
// ended; the caller's signal ends them at once.
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { request as httpsRequest, type Agent as HttpsAgent } from 'node:https';
import type { Agent } from 'node:http';
import type { ModelProvider } from '@berth/protocol/calls/model-access.ts';
import type { ModelLimits } from './limits.ts';
import { Redaction } from './redaction.ts';
import { Refusal } from './refusal.ts';
import { requestHeaders, responseHeaders, type ModelRequest } from './routes.ts';

/** Where to send a request. */
export interface ModelTarget {
  endpoint: string;
  key: string;
}

export interface ModelAgents {
  http: Agent;
  https: HttpsAgent;
}

interface Exchange {
  provider: ModelProvider;
  asked: ModelRequest;
  target: ModelTarget;
  agents: ModelAgents;
  limits: ModelLimits;
  signal: AbortSignal;
}

/** Rejects with a {@link Refusal} before the response has begun; afterwards breaks it off. */
export async function exchange(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { provider, asked, target, agents, limits, signal }: Exchange,
): Promise<void> {
  const base = new URL(target.endpoint);
  const isTls = base.protocol === 'https:';
  const upstream = (isTls ? httpsRequest : httpRequest)({
    protocol: base.protocol,
    hostname: base.hostname.replace(/^\[|\]$/g, ''),
    port: base.port,
    // With or without the version, which the path has too.
    path: `${base.pathname.replace(/\/(v1\/?)?$/, '')}${asked.path}`,
    method: asked.method,
    headers: requestHeaders(provider, asked, incoming.headers, target.key),
    agent: isTls ? agents.https : agents.http,
    signal,
  });
  const over = Promise.withResolvers<void>();
  let response: IncomingMessage | null = null;
  const fail = (refusal: Refusal): void => {
    over.reject(refusal);
    upstream.destroy();
  };
  const connecting = setTimeout(() => fail(new Refusal('badResponse', UNREACHABLE)), limits.connectMs);
  upstream.once('socket', (socket) => {
    const onConnect = (): void => clearTimeout(connecting);
    if (socket.connecting) socket.once(isTls ? 'secureConnect' : 'connect', onConnect);
    else onConnect();
  });
  const onFailure = (): void => {
    // A response that breaks off ends in relay().
    if (response === null) fail(new Refusal('badResponse', UNREACHABLE));
  };
  upstream.on('error', onFailure).once('close', onFailure);
  // The guest left, or the response is complete.
  outgoing.once('close', () => {
    over.resolve();
    upstream.destroy();
  });
  let interim = 0;
  upstream.on('information', () => {
    interim += 1;
    if (interim > limits.interimResponses)
      fail(new Refusal('badResponse', 'the model provider sent too many interim responses'));
  });
  upstream.once('response', (received) => {
    response = received;
    const fault = faultOf(received);
    if (fault !== null) return fail(fault);
    // The rest of a request that the provider does not read is not awaited.
    const connection = incoming.complete ? {} : { connection: 'close' };
    const redaction = new Redaction(target.key);
    const headers = responseHeaders(received.headers, (value) => redaction.header(value));
    outgoing.writeHead(received.statusCode as number, { ...headers, ...connection });
    outgoing.flushHeaders();
    relay(received, outgoing, limits.responseBytes, redaction);
  });
  send(incoming, upstream, asked.method === 'POST', limits.requestBytes, fail);
  try {
    await over.promise;
  } catch (error) {
    if (outgoing.headersSent) outgoing.destroy();
    throw error;
  } finally {
    clearTimeout(connecting);
    (response as IncomingMessage | null)?.destroy();
    upstream.destroy();
  }
}

const UNREACHABLE = 'the model provider cannot be reached';

/** Reason not to pass a response on: its text could repeat the key, or its redirect lead away. */
function faultOf({ statusCode: status = 0, headers }: IncomingMessage): Refusal | null {
  if (status === 401 || status === 407)
    return new Refusal('noAccess', "the model provider refused the project's key. Replace it");
  if (status >= 300 && status < 400) return new Refusal('badResponse', 'the model provider redirects the request');
  // Node reads such a status, but throws when it is to write it.
  if (status < 200) return new Refusal('badResponse', 'the model provider sent no valid status');
  // The key could not be found in it.
  if ((headers['content-encoding'] ?? 'identity') !== 'identity')
    return new Refusal('badResponse', 'the model provider encodes a response that must be plain');
  return null;
}

function send(
  incoming: IncomingMessage,
  upstream: NodeJS.WritableStream,
  hasBody: boolean,
  maxBytes: number,
  fail: (refusal: Refusal) => void,
): void {
  if (!hasBody) {
    upstream.end();
    return;
  }
  let bytes = 0;
  incoming.on('data', (chunk: Buffer) => {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) {
      incoming.unpipe(upstream);
      fail(tooLarge(maxBytes));
    }
  });
  incoming.pipe(upstream);
}

export function tooLarge(maxBytes: number): Refusal {
  return new Refusal('tooLarge', `the request is longer than ${maxBytes} bytes`);
}

/**
 * Copies a response. What one read of the socket brought is written at once: a model sends many
 * small events, and each write costs a system call.
 */
function relay(from: IncomingMessage, to: ServerResponse, maxBytes: number, redaction: Redaction): void {
  let bytes = 0;
  let held: Buffer[] = [];
  const flush = (): void => {
    if (held.length === 0 || to.destroyed) return;
    const chunk = held.length === 1 ? (held[0] as Buffer) : Buffer.concat(held);
    held = [];
    if (!to.write(chunk)) from.pause();
  };
  to.on('drain', () => from.resume());
  from.on('data', (chunk: Buffer) => {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) {
      to.destroy();
      return;
    }
    const free = redaction.chunk(chunk);
    if (free.length === 0) return;
    held.push(free);
    if (held.length === 1) process.nextTick(flush);
  });
  from.once('end', () => {
    flush();
    to.end(redaction.end());
  });
  // Broken off: the guest must not take the part for the whole.
  from.once('close', () => {
    if (!from.complete) to.destroy();
  });
  from.on('error', () => undefined);
}
