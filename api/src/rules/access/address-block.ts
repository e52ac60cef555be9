// Unit by which anonymous callers are counted: an IPv4 address, or the /64 network of an IPv6
// address, which a single subscriber has.

/** Longest text of an address with a zone. A proxy may forward arbitrary text as an address. */
const MAX_CHARACTERS = 64;

/**
 * An address with a port, as some proxies forward it: `192.0.2.7:5123`, `[2001:db8::1]:5123`. With
 * the port, each connection would count as a separate caller.
 */
const WITH_PORT = /^(?:(\d+\.\d+\.\d+\.\d+)|\[([^\]]*)\])(?::\d+)?$/;

/** The counted form of an address. Text that is not an address is returned unchanged. */
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
  // A dotted-decimal tail replaces two groups.
  const present = head.length + tail.length + (text.includes('.') ? 1 : 0);
  const zeros = after === undefined ? [] : Array.from({ length: Math.max(0, 8 - present) }, () => '0');
  const network = [...head, ...zeros, ...tail].slice(0, 4).map((group) => group.replace(/^0+(?=.)/, ''));
  return `${network.join(':')}::/64`;
}
