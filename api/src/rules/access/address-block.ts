// Who is counted as one caller before it has said who it is: an IPv4 address; of IPv6 the network
// of 64 bits that one subscriber has.

/** Longest text of an address with a zone; what a proxy passes on as an address may be anything. */
const MAX_CHARACTERS = 64;

/**
 * Some proxies pass the port on too, with which each connection would be another caller:
 * `192.0.2.7:5123`, `[2001:db8::1]:5123`.
 */
const WITH_PORT = /^(?:(\d+\.\d+\.\d+\.\d+)|\[([^\]]*)\])(?::\d+)?$/;

/** The address as it is counted. Text that is no address is counted as it is. */
export function addressBlock(address: string): string {
  const given = address.slice(0, MAX_CHARACTERS).toLowerCase();
  const [, v4, v6] = WITH_PORT.exec(given) ?? [];
  const text = v4 ?? v6 ?? given;
  if (!text.includes(':')) return text;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(text)?.[1];
  if (mapped !== undefined) return mapped;
  const [before = '', after] = (text.split('%', 1)[0] ?? '').split('::', 2);
  const groupsOf = (part: string): string[] => (part === '' ? [] : part.split(':'));
  const head = groupsOf(before);
  const tail = groupsOf(after ?? '');
  // A dotted end stands for two groups.
  const present = head.length + tail.length + (text.includes('.') ? 1 : 0);
  const zeros = after === undefined ? [] : Array.from({ length: Math.max(0, 8 - present) }, () => '0');
  const network = [...head, ...zeros, ...tail].slice(0, 4).map((group) => group.replace(/^0+(?=.)/, ''));
  return `${network.join(':')}::/64`;
}
