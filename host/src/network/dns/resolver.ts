// DNS resolver of the guests: relays to the host's name servers, with one listener on the host end
// of each slot's veth pair. Listener, limits and packet queue are per guest. Caches nothing.
import { createSocket } from 'node:dgram';
import { once, setMaxListeners } from 'node:events';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { QUERY_MAX_BYTES, readQuery, refusal, serverFailure, udpAnswer, withId } from './message.ts';
import type { Query } from './message.ts';
import { RESOLVER_PORT } from '../slots/firewall.ts';
import { RateLimit } from '@berth/os/rate-limit.ts';
import { queryByTcp, queryByUdp, framed } from './upstream-query.ts';
import type { QueryUpstreams } from './upstream-query.ts';
import type { Upstreams } from './upstreams.ts';

export const RESOLVER_LIMITS = {
  /**
   * In-flight questions, per guest and in all. A guest may use at most half of the free ones, and
   * always `assured`, so that a new guest always finds room. Excess questions are dropped; the
   * guest's own resolver retries.
   */
  perGuest: 128,
  inAll: 1_024,
  assured: 4,
  /** Questions per second of one guest, and its burst. */
  questionsPerSecond: 200,
  questionBurst: 400,
  connectionsPerGuest: 16,
  connectionIdleMs: 10_000,
} as const;

/** Decides which names a guest may resolve. */
export interface NameGate {
  /** False: the question is refused and not relayed. */
  allows(query: Query): boolean;
  /** Opens the answered addresses. False: the answer is withheld. */
  admit(query: Query, answer: Buffer): Promise<boolean>;
}

const EVERY_NAME: NameGate = { allows: () => true, admit: () => Promise.resolve(true) };

export interface ServedGuest {
  /** Closes its listeners, connections and in-flight questions. */
  close(): void;
}

export class Resolver {
  readonly #upstreams: Upstreams;
  #inFlight = 0;

  constructor(upstreams: Upstreams) {
    this.#upstreams = upstreams;
  }

  /** Serves the guest whose slot has this host address. Rejects if it cannot listen there. */
  async serve(address: string, gate: NameGate = EVERY_NAME): Promise<ServedGuest> {
    const guest = new Guest((mine, query, send, signal) => this.#forward(mine, query, send, signal), gate);
    try {
      await guest.listen(address);
    } catch (error) {
      guest.close();
      throw error;
    }
    return guest;
  }

  /**
   * The response under the server's id; null if there is none; `busy` if the guest, with `mine`
   * questions in flight, has used its share.
   */
  async #forward(
    mine: number,
    query: Query,
    send: QueryUpstreams,
    signal: AbortSignal,
  ): Promise<Buffer | 'busy' | null> {
    const { perGuest, inAll, assured } = RESOLVER_LIMITS;
    if (mine >= Math.min(perGuest, Math.max(assured, (inAll - this.#inFlight) / 2))) return 'busy';
    this.#inFlight += 1;
    try {
      return await send(query, this.#upstreams.servers(), signal);
    } finally {
      this.#inFlight -= 1;
    }
  }
}

type Relay = (mine: number, query: Query, send: QueryUpstreams, signal: AbortSignal) => Promise<Buffer | 'busy' | null>;

class Guest implements ServedGuest {
  readonly #relay: Relay;
  readonly #gate: NameGate;
  readonly #udp = createSocket('udp4');
  readonly #tcp: Server = createServer({ allowHalfOpen: true }, (connection) => void this.#serveConnection(connection));
  readonly #connections = new Set<Socket>();
  readonly #rate = new RateLimit(RESOLVER_LIMITS.questionsPerSecond, RESOLVER_LIMITS.questionBurst);
  readonly #closed = new AbortController();
  #inFlight = 0;

  constructor(relay: Relay, gate: NameGate) {
    this.#relay = relay;
    this.#gate = gate;
    setMaxListeners(0, this.#closed.signal);
    this.#tcp.maxConnections = RESOLVER_LIMITS.connectionsPerGuest;
  }

  async listen(address: string): Promise<void> {
    this.#udp.bind({ address, port: RESOLVER_PORT });
    await once(this.#udp, 'listening');
    this.#tcp.listen({ host: address, port: RESOLVER_PORT });
    await once(this.#tcp, 'listening');
    // From here on an error concerns a single packet or connection (for example of a destroyed
    // guest) and closes nothing.
    this.#udp.on('error', () => undefined);
    this.#tcp.on('error', () => undefined);
    this.#udp.on('message', (bytes, from) => void this.#serveDatagram(bytes, from.port, from.address));
    // Neither socket keeps an otherwise idle daemon alive.
    this.#udp.unref();
    this.#tcp.unref();
  }

  close(): void {
    if (this.#closed.signal.aborted) return;
    this.#closed.abort();
    this.#udp.close();
    this.#tcp.close();
    for (const connection of this.#connections) connection.destroy();
  }

  async #serveDatagram(bytes: Buffer, port: number, address: string): Promise<void> {
    // Port 0 cannot receive a response, and Node throws when sending to it.
    if (!this.#rate.take() || port === 0) return;
    const read = readQuery(bytes);
    if (read === 'drop') return;
    const answer = 'answer' in read ? read.answer : await this.#answer(read.relay, queryByUdp);
    if (answer && !this.#closed.signal.aborted)
      this.#udp.send('relay' in read ? udpAnswer(answer, read.relay) : answer, port, address);
  }

  /** Serves the questions of one connection in sequence; the next waits in the guest's socket. */
  async #serveConnection(connection: Socket): Promise<void> {
    this.#connections.add(connection);
    connection.on('close', () => this.#connections.delete(connection));
    connection.on('error', () => connection.destroy());
    connection.setTimeout(RESOLVER_LIMITS.connectionIdleMs, () => connection.destroy());
    let received: Buffer = Buffer.alloc(0);
    try {
      for await (const chunk of connection as AsyncIterable<Buffer>) {
        received = Buffer.concat([received, chunk]);
        while (received.length >= 2) {
          const length = received.readUInt16BE(0);
          if (length > QUERY_MAX_BYTES) return void connection.destroy();
          if (received.length < 2 + length) break;
          const answer = await this.#answerFrame(Buffer.from(received.subarray(2, 2 + length)));
          received = received.subarray(2 + length);
          if (!answer) return void connection.destroy();
          if (!connection.write(framed(answer))) await once(connection, 'drain', { signal: this.#closed.signal });
        }
      }
      connection.end();
    } catch (error) {
      // The guest reset, idled out or is gone; no other guest is affected.
      connection.destroy(error as Error);
    }
  }

  /** Null: close the connection. */
  async #answerFrame(bytes: Buffer): Promise<Buffer | null> {
    if (!this.#rate.take()) return null;
    const read = readQuery(bytes);
    if (read === 'drop') return null;
    if ('answer' in read) return read.answer;
    const answer = await this.#answer(read.relay, queryByTcp);
    return answer && withId(answer, read.relay.id);
  }

  /**
   * A response under any id, REFUSED and SERVFAIL included; null if the question is dropped because
   * too many are in flight.
   */
  async #answer(query: Query, send: QueryUpstreams): Promise<Buffer | null> {
    if (!this.#gate.allows(query)) return refusal(query);
    const mine = this.#inFlight;
    this.#inFlight += 1;
    try {
      const answer = await this.#relay(mine, query, send, this.#closed.signal);
      if (answer === 'busy') return null;
      return answer !== null && (await this.#gate.admit(query, answer)) ? answer : serverFailure(query);
    } finally {
      this.#inFlight -= 1;
    }
  }
}
