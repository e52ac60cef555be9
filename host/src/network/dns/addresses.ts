// IPv4 addresses in a name server's response. Trusts nothing in it: never throws, never reads out
// of bounds, and does a bounded amount of work for any input.

const HEADER_BYTES = 12;
const TYPE_A = 1;
const TYPE_CNAME = 5;
const CLASS_INTERNET = 1;
const NAME_BYTES = 255;

export const ADDRESS_LIMITS = {
  /** Records read of one response. */
  records: 128,
  /** Length of a chain of CNAME records. */
  aliases: 16,
  /** Addresses taken from one response. */
  addresses: 64,
} as const;

export interface ResolvedAddress {
  address: string;
  ttlSeconds: number;
}

interface Resource {
  name: string;
  type: number;
  ttlSeconds: number;
  /** Offset and length of the data. */
  start: number;
  length: number;
}

/**
 * Name of the first question, in lower case; null if a label has other characters than letters,
 * digits, `-` and `_`, for example a dot.
 */
export function questionName(message: Buffer): string | null {
  const read = readName(message, HEADER_BYTES);
  if (read === null) return null;
  return /^[a-z0-9_.-]+$/.test(read.name) && read.plain ? read.name : null;
}

/** Addresses that the response gives the name, directly or by CNAME records. */
export function addressesOf(message: Buffer, name: string): ResolvedAddress[] {
  const records = answerRecords(message);
  const aliases = new Map([[name, Number.POSITIVE_INFINITY]]);
  for (let current = name, steps = 0; steps < ADDRESS_LIMITS.aliases; steps += 1) {
    const record = records.find((one) => one.type === TYPE_CNAME && one.name === current);
    const target = record && readName(message, record.start)?.name;
    if (record === undefined || target === undefined || aliases.has(target)) break;
    aliases.set(target, Math.min(record.ttlSeconds, aliases.get(current) as number));
    current = target;
  }
  const found: ResolvedAddress[] = [];
  for (const { name: owner, type, ttlSeconds, start, length } of records) {
    const most = aliases.get(owner);
    if (type !== TYPE_A || length !== 4 || most === undefined) continue;
    found.push({ address: [...message.subarray(start, start + 4)].join('.'), ttlSeconds: Math.min(ttlSeconds, most) });
    if (found.length === ADDRESS_LIMITS.addresses) break;
  }
  return found;
}

function answerRecords(message: Buffer): Resource[] {
  const records: Resource[] = [];
  if (message.length < HEADER_BYTES || message.readUInt16BE(4) !== 1) return records;
  const question = readName(message, HEADER_BYTES);
  if (question === null) return records;
  let offset = question.end + 4;
  const count = Math.min(message.readUInt16BE(6), ADDRESS_LIMITS.records);
  while (records.length < count) {
    const owner = readName(message, offset);
    if (owner === null || owner.end + 10 > message.length) break;
    const start = owner.end + 10;
    const length = message.readUInt16BE(owner.end + 8);
    if (start + length > message.length) break;
    records.push({
      name: owner.name,
      // Other classes have no addresses of the internet.
      type: message.readUInt16BE(owner.end + 2) === CLASS_INTERNET ? message.readUInt16BE(owner.end) : 0,
      ttlSeconds: message.readUInt32BE(owner.end + 4),
      start,
      length,
    });
    offset = start + length;
  }
  return records;
}

/**
 * A name in lower case and the offset after it; null if it is malformed. Compression pointers must
 * point backwards, so that reading ends. `plain`: no label contains a dot.
 */
function readName(message: Buffer, start: number): { name: string; end: number; plain: boolean } | null {
  const labels: string[] = [];
  let [offset, before, bytes] = [start, start, 0];
  let end: number | null = null;
  for (;;) {
    const length = message[offset];
    if (length === undefined) return null;
    if (length >= 0xc0) {
      if (offset + 1 >= message.length) return null;
      end ??= offset + 2;
      offset = message.readUInt16BE(offset) & 0x3fff;
      if (offset >= before) return null;
      before = offset;
      continue;
    }
    bytes += length + 1;
    if (length > 63 || bytes > NAME_BYTES || offset + 1 + length > message.length) return null;
    if (length === 0) break;
    labels.push(message.toString('latin1', offset + 1, offset + 1 + length).toLowerCase());
    offset += 1 + length;
  }
  return { name: labels.join('.'), end: end ?? offset + 1, plain: labels.every((label) => !label.includes('.')) };
}
