// DNS resolver of the guests: relays to the host's name servers, with one listener on the host end
// of each slot's veth pair. Listener, limits and packet queue are per guest. Caches nothing.
import { createSocket } from 'node:dgram';
import { once, setMaxListeners } from 'node:events';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import type { EgressPolicy } from '@berth/protocol/egress.ts';
import { OPEN_EGRESS } from '@berth/protocol/egress.ts';
import type { ResolvedAddress } from './addresses.ts';
import { QUERY_MAX_BYTES } from './message.ts';
import { newQuestions, QUESTION_LIMITS, type Answered, type AnswerMessage, type GuestMessage } from './questions.ts';
import { RESOLVER_PORT } from '../slots/firewall.ts';
import { RateLimit } from '@berth/os/rate-limit.ts';
import { framed } from './upstream-query.ts';
import type { Upstreams } from './upstreams.ts';

export const RESOLVER_LIMITS = {
  ...QUESTION_LIMITS,
  /** Messages of one guest in work, those without a query of a name server included. */
  messagesPerGuest: 2 * QUESTION_LIMITS.perGuest,
  /** Questions per second of one guest, and its burst. */
  questionsPerSecond: 200,
  questionBurst: 400,
  connectionsPerGuest: 16,
  connectionIdleMs: 10_000,
} as const;

/** The egress policy of a guest, as far as it concerns names. */
export interface NameGate {
  policy(): EgressPolicy;
  /** Notes a name that the policy refused; null for an unusual one. */
  refused(name: string | null): void;
  /** Opens the addresses of a name. False: the answer is withheld. */
  admit(name: string | null, addresses: readonly ResolvedAddress[]): Promise<boolean>;
}

const EVERY_NAME: NameGate = {
  policy: () => OPEN_EGRESS,
  refused: () => undefined,
  admit: () => Promise.resolve(true),
};

export interface ServedGuest {
  /** Closes its listeners, connections and in-flight questions. */
  close(): void;
}

export class Resolver {
  readonly #upstreams: Upstreams;
  readonly #answer: AnswerMessage;

  constructor(upstreams: Upstreams, answer: AnswerMessage = newQuestions()) {
    this.#upstreams = upstreams;
    this.#answer = answer;
  }

  /** Serves the guest whose slot has this host address. Rejects if it cannot listen there. */
  async serve(address: string, gate: NameGate = EVERY_NAME): Promise<ServedGuest> {
    const answer: Relay = (message, signal) =>
      this.#answer({ ...message, guest: address, servers: this.#upstreams.servers(), policy: gate.policy() }, signal);
    const guest = new Guest(answer, gate);
    try {
      await guest.listen(address);
    } catch (error) {
      guest.close();
      throw error;
    }
    return guest;
  }
}

type Relay = (message: Pick<GuestMessage, 'bytes' | 'by'>, signal: AbortSignal) => Promise<Answered>;

class Guest implements ServedGuest {
  readonly #relay: Relay;
  readonly #gate: NameGate;
  readonly #udp = createSocket('udp4');
  readonly #tcp: Server = createServer({ allowHalfOpen: true }, (connection) => void this.#serveConnection(connection));
  readonly #connections = new Set<Socket>();
  readonly #rate = new RateLimit(RESOLVER_LIMITS.questionsPerSecond, RESOLVER_LIMITS.questionBurst);
  readonly #closed = new AbortController();
  #inWork = 0;

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
    const answer = await this.#answer(bytes, 'udp');
    if (answer && !this.#closed.signal.aborted) this.#udp.send(answer, port, address);
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
    return await this.#answer(bytes, 'tcp');
  }

  /** Null if the message is dropped. */
  async #answer(bytes: Buffer, by: GuestMessage['by']): Promise<Buffer | null> {
    if (bytes.length > QUERY_MAX_BYTES || this.#inWork >= RESOLVER_LIMITS.messagesPerGuest) return null;
    this.#inWork += 1;
    try {
      const { answer, withheld, name, refused, addresses } = await this.#relay({ bytes, by }, this.#closed.signal);
      if (refused) this.#gate.refused(name);
      if (withheld === null) return answer;
      return (await this.#gate.admit(name, addresses)) ? answer : withheld;
    } catch {
      // The gateway exited, or the guest is gone: the guest's resolver retries.
      return null;
    } finally {
      this.#inWork -= 1;
    }
  }
}
