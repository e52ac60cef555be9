// Sends one guest question to the name servers in turn, by UDP or TCP, within one deadline. Each
// attempt has its own socket, so a random source port, and a random id. Stateless.
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { connect, isIPv6 } from 'node:net';
import { RCODE, answers, rcodeOf, withId } from './message.ts';
import type { Query } from './message.ts';

export interface NameServer {
  address: string;
  port: number;
}

/** Deadline for all attempts of one question. A guest's own resolver gives up after 5 s. */
const QUESTION_DEADLINE_MS = 4_500;
const UDP_TRY_MS = 1_500;
const UDP_TRIES = 3;

/** Response codes after which the next server is queried. */
const TRY_NEXT_RCODES: readonly number[] = [RCODE.serverFailure, RCODE.notImplemented, RCODE.refused];

type QueryUpstreams = (query: Query, servers: readonly NameServer[], signal: AbortSignal) => Promise<Buffer | null>;

/**
 * Queries by UDP, each server at least once in turn. Resolves with the response under the server's
 * id, or null.
 */
export const queryByUdp: QueryUpstreams = (query, servers, signal) =>
  tryServers({
    query,
    servers,
    signal,
    tries: Math.max(UDP_TRIES, servers.length),
    tryMs: UDP_TRY_MS,
    attempt: tryUdp,
  });

/** Queries by TCP, each server once. */
export const queryByTcp: QueryUpstreams = (query, servers, signal) =>
  tryServers({ query, servers, signal, tries: servers.length, tryMs: QUESTION_DEADLINE_MS, attempt: tryTcp });

/** An attempt: the response, or null on timeout (`ms`) or abort. */
type Attempt = (query: Query, server: NameServer, ms: number, signal: AbortSignal) => Promise<Buffer | null>;

interface ServerAttempts {
  query: Query;
  servers: readonly NameServer[];
  signal: AbortSignal;
  tries: number;
  tryMs: number;
  attempt: Attempt;
}

async function tryServers({ query, servers, signal, tries, tryMs, attempt }: ServerAttempts): Promise<Buffer | null> {
  const deadlineAt = performance.now() + QUESTION_DEADLINE_MS;
  let unhelpful: Buffer | null = null;
  let refusals = 0;
  for (let index = 0; index < tries && refusals < servers.length; index += 1) {
    const server = servers[index % servers.length];
    const leftMs = deadlineAt - performance.now();
    if (!server || leftMs <= 0 || signal.aborted) break;
    const answer = await attempt(query, server, Math.min(tryMs, leftMs), signal);
    if (!answer) continue;
    if (!TRY_NEXT_RCODES.includes(rcodeOf(answer))) return answer;
    unhelpful ??= answer;
    refusals += 1;
  }
  return unhelpful;
}

/**
 * Sends a datagram and awaits its response. The socket is connected: the kernel delivers packets
 * from this server alone.
 */
const tryUdp: Attempt = (query, server, ms, signal) => {
  const { promise, resolve } = Promise.withResolvers<Buffer | null>();
  const id = randomInt(65_536);
  const socket = createSocket(isIPv6(server.address) ? 'udp6' : 'udp4');
  const settle = once(signal, ms, (answer) => {
    socket.close();
    resolve(answer);
  });
  // No route, or port closed: query the next server at once.
  socket.on('error', () => settle(null));
  socket.on('connect', () => socket.send(withId(query.bytes, id)));
  socket.on('message', (message) => {
    if (answers(message, query, id)) settle(message);
  });
  socket.connect(server.port, server.address);
  return promise;
};

/** Sends a question over a new connection. */
const tryTcp: Attempt = (query, server, ms, signal) => {
  const { promise, resolve } = Promise.withResolvers<Buffer | null>();
  const id = randomInt(65_536);
  const socket = connect({ host: server.address, port: server.port });
  const settle = once(signal, ms, (answer) => {
    socket.destroy();
    resolve(answer);
  });
  let received: Buffer = Buffer.alloc(0);
  socket.on('error', () => settle(null));
  socket.on('close', () => settle(null));
  socket.on('connect', () => socket.write(framed(withId(query.bytes, id))));
  socket.on('data', (chunk: Buffer) => {
    // Bounded: a frame has at most 65,535 bytes, and the first one closes the connection.
    received = Buffer.concat([received, chunk]);
    if (received.length < 2) return;
    const length = received.readUInt16BE(0);
    if (received.length < 2 + length) return;
    const message = received.subarray(2, 2 + length);
    settle(answers(message, query, id) ? message : null);
  });
  return promise;
};

/** Calls `end` exactly once: on the first call, after `ms`, or on abort. */
function once(signal: AbortSignal, ms: number, end: (answer: Buffer | null) => void): (answer: Buffer | null) => void {
  let ended = false;
  const settle = (answer: Buffer | null) => {
    if (ended) return;
    ended = true;
    clearTimeout(timer);
    signal.removeEventListener('abort', giveUp);
    end(answer);
  };
  const giveUp = () => settle(null);
  const timer = setTimeout(giveUp, ms);
  signal.addEventListener('abort', giveUp);
  return settle;
}

/** TCP framing: the length, then the message. */
export function framed(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length, 0);
  return Buffer.concat([length, message]);
}
