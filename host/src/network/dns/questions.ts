// Answers messages of guests: reads the question, applies the names of the egress policy, queries
// the name servers, and reads the addresses of the response. Runs in the guest gateway, without
// privileges, or in the host daemon.
import { allowsName, type NamePolicy } from './names.ts';
import { addressesOf, questionName, type ResolvedAddress } from './addresses.ts';
import { readQuery, refusal, serverFailure, udpAnswer, withId, type Query } from './message.ts';
import type { NameServer } from './upstream-query.ts';
import { queryByTcp, queryByUdp } from './upstream-query.ts';

export const QUESTION_LIMITS = {
  /**
   * In-flight questions, per guest and in all. A guest may use at most half of the free ones, and
   * always `assured`, so that a new guest always finds room. Excess questions are dropped; the
   * guest's own resolver retries.
   */
  perGuest: 128,
  inAll: 1_024,
  assured: 4,
} as const;

export interface GuestMessage {
  /** Address of the listener, which tells the sandbox. */
  guest: string;
  bytes: Buffer;
  by: 'udp' | 'tcp';
  servers: readonly NameServer[];
  policy: NamePolicy;
}

export interface Answered {
  /** Under the guest's id; null: none is sent. */
  answer: Buffer | null;
  /**
   * SERVFAIL, sent instead if the addresses cannot be opened. Null unless a name server responded.
   */
  withheld: Buffer | null;
  /** Name of the question; null if it has unusual characters, or was not read. */
  name: string | null;
  /** The policy does not allow the name. */
  refused: boolean;
  /** Addresses that the response gives for the name. */
  addresses: readonly ResolvedAddress[];
}

/** Rejects if the answer is unknown; the question is then dropped. */
export type AnswerMessage = (message: GuestMessage, signal: AbortSignal) => Promise<Answered>;

const NOTHING: Answered = { answer: null, withheld: null, name: null, refused: false, addresses: [] };

/** Answers in this process. */
export function newQuestions(): AnswerMessage {
  const inFlight = new Map<string, number>();
  let all = 0;
  return async ({ guest, bytes, by, servers, policy }, signal) => {
    const read = readQuery(bytes);
    if (read === 'drop') return NOTHING;
    if ('answer' in read) return { ...NOTHING, answer: read.answer };
    const query = read.relay;
    const name = questionName(query.bytes);
    const isAllowed = policy.mode === 'open' || (name !== null && allowsName(policy, name));
    if (!isAllowed) return { ...NOTHING, answer: refusal(query), name, refused: true };

    const mine = inFlight.get(guest) ?? 0;
    const { perGuest, inAll, assured } = QUESTION_LIMITS;
    if (mine >= Math.min(perGuest, Math.max(assured, (inAll - all) / 2))) return NOTHING;
    all += 1;
    inFlight.set(guest, mine + 1);
    try {
      const response = await (by === 'udp' ? queryByUdp : queryByTcp)(query, servers, signal);
      const withheld = forGuest(serverFailure(query), query, by);
      if (response === null) return { ...NOTHING, answer: withheld, name };
      const addresses = name === null ? [] : addressesOf(response, name);
      return { answer: forGuest(response, query, by), withheld, name, refused: false, addresses };
    } finally {
      all -= 1;
      const left = (inFlight.get(guest) ?? 1) - 1;
      if (left === 0) inFlight.delete(guest);
      else inFlight.set(guest, left);
    }
  };
}

function forGuest(message: Buffer, query: Query, by: GuestMessage['by']): Buffer {
  return by === 'udp' ? udpAnswer(message, query) : withId(message, query.id);
}
