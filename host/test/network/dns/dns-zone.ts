// Responses of the tests' name server: a small zone, in DNS's wire format.

/** IPv4 address of every name that ends in `.internet.test`. */
export const ZONE_ADDRESS = '44.0.0.10';

/** A name whose response does not fit into a UDP packet. */
export const LARGE_NAME = 'large.internet.test';
const LARGE_TEXT = 'x'.repeat(250);
export const LARGE_RECORDS = 20;

/** Resolves to a closed address, as a rebinding name does. */
export const PRIVATE_NAME = 'private.internet.test';
/** Address of {@link PRIVATE_NAME}. */
export const PRIVATE_ADDRESS = '10.0.0.1';

/** Resolves to 9.9.9.10, the uplink's other address. */
export const OTHER_NAME = 'other.internet.test';
export const OTHER_ADDRESS = '9.9.9.10';

/** A query for a name, in wire format; type 1 is A, 16 is TXT. */
export function question(id: number, name: string, type = 1, dnsClass = 1): Buffer {
  const labels = name.split('.').map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]));
  const header = Buffer.from([id >> 8, id & 255, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
  return Buffer.concat([header, ...labels, Buffer.from([0, type >> 8, type & 255, dnsClass >> 8, dnsClass & 255])]);
}

/** The name in a query. */
export function nameOf(query: Buffer): string {
  const labels: string[] = [];
  for (let offset = 12; query[offset]; offset += (query[offset] ?? 0) + 1)
    labels.push(query.toString('latin1', offset + 1, offset + 1 + (query[offset] ?? 0)));

  return labels.join('.');
}

/** The zone's response to a query. */
export function answerOf(query: Buffer, transport: 'udp' | 'tcp'): Buffer {
  const name = nameOf(query).toLowerCase();
  const end = query.indexOf(0, 12) + 5;
  const head = Buffer.from(query.subarray(0, end));
  head.writeUInt16BE(0, 10);
  if (!name.endsWith('.internet.test')) {
    head.writeUInt16BE(0x8183, 2);
    return head;
  }
  if (name === LARGE_NAME && transport === 'udp') {
    head.writeUInt16BE(0x8380, 2);
    return head;
  }
  head.writeUInt16BE(0x8180, 2);
  const record =
    name === LARGE_NAME
      ? resourceRecord(16, Buffer.concat([Buffer.from([LARGE_TEXT.length]), Buffer.from(LARGE_TEXT)]))
      : resourceRecord(1, Buffer.from(addressOf(name).split('.').map(Number)));
  const records = name === LARGE_NAME ? Array.from({ length: LARGE_RECORDS }, () => record) : [record];
  head.writeUInt16BE(records.length, 6);
  return Buffer.concat([head, ...records]);
}

function addressOf(name: string): string {
  if (name === PRIVATE_NAME) return PRIVATE_ADDRESS;
  return name === OTHER_NAME ? OTHER_ADDRESS : ZONE_ADDRESS;
}

function resourceRecord(type: number, data: Buffer): Buffer {
  const head = Buffer.from([0xc0, 0x0c, 0, type, 0, 1, 0, 0, 0, 60, 0, 0]);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}
