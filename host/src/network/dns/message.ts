// Minimal DNS wire format for a relay: header and question. Trusts neither guests nor name servers.
// Pure; never throws or reads out of bounds for any input.

const HEADER_BYTES = 12;

/** Query size limit: a name, plus room for EDNS options. */
export const QUERY_MAX_BYTES = 4_096;

/** UDP response size limit for a guest without EDNS. */
const PLAIN_UDP_BYTES = 512;

/** Limit for relayed UDP responses, even if the guest advertises more. Longer ones need TCP. */
const UDP_ANSWER_MAX_BYTES = 4_096;

const TYPE_OPT = 41;
const TYPE_IXFR = 251;
const TYPE_AXFR = 252;
const CLASS_INTERNET = 1;
const CLASS_ANY = 255;

const FLAG_ANSWER = 0x8000;
const FLAG_TRUNCATED = 0x0200;
const FLAG_RECURSION_DESIRED = 0x0100;
const FLAG_RECURSION_AVAILABLE = 0x0080;
const OPCODE_MASK = 0x7800;

export const RCODE = { formatError: 1, serverFailure: 2, notImplemented: 4, refused: 5 } as const;

export interface Query {
  bytes: Buffer;
  id: number;
  questionEnd: number;
  /** Longest UDP response that the guest accepts, in bytes. */
  udpAnswerBytes: number;
}

/** Handling of a guest's message: relay it, return an error response, or drop it. */
type ReadQuery = { relay: Query } | { answer: Buffer } | 'drop';

/** Parses a guest's message. Drops responses, and messages too short to answer. */
export function readQuery(bytes: Buffer): ReadQuery {
  if (bytes.length < HEADER_BYTES || bytes.length > QUERY_MAX_BYTES) return 'drop';
  const flags = bytes.readUInt16BE(2);
  if (flags & FLAG_ANSWER) return 'drop';
  if (flags & OPCODE_MASK) return { answer: failure(bytes, HEADER_BYTES, RCODE.notImplemented) };
  const questions = bytes.readUInt16BE(4);
  const otherRecords = bytes.readUInt16BE(6) + bytes.readUInt16BE(8);
  const questionEnd = endOfQuestion(bytes);
  if (questions !== 1 || otherRecords !== 0 || questionEnd === null)
    return { answer: failure(bytes, HEADER_BYTES, RCODE.formatError) };
  const type = bytes.readUInt16BE(questionEnd - 4);
  const dnsClass = bytes.readUInt16BE(questionEnd - 2);
  // Refuse zone transfers and questions about the name server itself.
  if (type === TYPE_AXFR || type === TYPE_IXFR || (dnsClass !== CLASS_INTERNET && dnsClass !== CLASS_ANY))
    return { answer: failure(bytes, questionEnd, RCODE.refused) };

  return {
    relay: { bytes, id: bytes.readUInt16BE(0), questionEnd, udpAnswerBytes: udpAnswerBytes(bytes, questionEnd) },
  };
}

/** A copy of the question under another id, for a name server. */
export function withId(message: Buffer, id: number): Buffer {
  const copy = Buffer.from(message);
  copy.writeUInt16BE(id, 0);
  return copy;
}

/**
 * Checks that a name server's bytes respond to the query under this id. Case may differ: some
 * servers change it.
 */
export function answers(message: Buffer, query: Query, id: number): boolean {
  if (message.length < HEADER_BYTES || message.readUInt16BE(0) !== id) return false;
  const flags = message.readUInt16BE(2);
  if (!(flags & FLAG_ANSWER) || flags & OPCODE_MASK) return false;
  const questions = message.readUInt16BE(4);
  // A server that could not parse the question may omit it; accept only an error then.
  if (questions === 0) return message.length === HEADER_BYTES && rcodeOf(message) !== 0;
  if (questions !== 1 || message.length < query.questionEnd) return false;
  return lowerCase(message, query.questionEnd) === lowerCase(query.bytes, query.questionEnd);
}

export function rcodeOf(message: Buffer): number {
  return message.readUInt16BE(2) & 0x000f;
}

/** SERVFAIL response for a question that got no response. */
export function serverFailure(query: Query): Buffer {
  return failure(query.bytes, query.questionEnd, RCODE.serverFailure);
}

/** REFUSED response for a question that the egress policy does not allow. */
export function refusal(query: Query): Buffer {
  return failure(query.bytes, query.questionEnd, RCODE.refused);
}

/**
 * A name server's response as sent to the guest by UDP: with the guest's id, truncated to header
 * and question if too long.
 */
export function udpAnswer(message: Buffer, query: Query): Buffer {
  if (message.length <= query.udpAnswerBytes) return withId(message, query.id);
  const cut = Buffer.from(message.subarray(0, query.questionEnd));
  cut.writeUInt16BE(query.id, 0);
  cut.writeUInt16BE(cut.readUInt16BE(2) | FLAG_TRUNCATED, 2);
  cut.writeUInt32BE(0, 6);
  cut.writeUInt16BE(0, 10);
  return cut;
}

function failure(bytes: Buffer, end: number, rcode: number): Buffer {
  const answer = Buffer.from(bytes.subarray(0, end));
  const kept = bytes.readUInt16BE(2) & (OPCODE_MASK | FLAG_RECURSION_DESIRED);
  answer.writeUInt16BE(FLAG_ANSWER | FLAG_RECURSION_AVAILABLE | kept | rcode, 2);
  answer.writeUInt16BE(end > HEADER_BYTES ? 1 : 0, 4);
  answer.writeUInt32BE(0, 6);
  answer.writeUInt16BE(0, 10);
  return answer;
}

function endOfQuestion(bytes: Buffer): number | null {
  const nameEnd = endOfName(bytes, HEADER_BYTES);
  return nameEnd === null || nameEnd + 4 > bytes.length ? null : nameEnd + 4;
}

/** Names in a question have no compression pointers: nothing precedes them. */
function endOfName(bytes: Buffer, start: number): number | null {
  let offset = start;
  for (;;) {
    const length = bytes[offset];
    if (length === undefined || length > 63) return null;
    offset += 1 + length;
    if (offset - start > 255) return null;
    if (length === 0) return offset;
  }
}

/**
 * UDP size from the EDNS record, if it is the first record after the question. Every resolver
 * library puts it there.
 */
function udpAnswerBytes(bytes: Buffer, questionEnd: number): number {
  const isEdns = bytes.readUInt16BE(10) > 0 && bytes.length >= questionEnd + 11 && bytes[questionEnd] === 0;
  if (!isEdns || bytes.readUInt16BE(questionEnd + 1) !== TYPE_OPT) return PLAIN_UDP_BYTES;
  return Math.min(UDP_ANSWER_MAX_BYTES, Math.max(PLAIN_UDP_BYTES, bytes.readUInt16BE(questionEnd + 3)));
}

function lowerCase(bytes: Buffer, questionEnd: number): string {
  const name = bytes.subarray(HEADER_BYTES, questionEnd - 4).toString('latin1');
  return (
    name.replace(/[A-Z]/g, (letter) => letter.toLowerCase()) +
    bytes.subarray(questionEnd - 4, questionEnd).toString('latin1')
  );
}
