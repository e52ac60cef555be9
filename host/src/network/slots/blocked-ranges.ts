// IPv4 addresses closed to guests, independent of the host's routes. IPv6 is not listed: guests
// have none.
import { BlockList } from 'node:net';

/** Each block with its reason. Source of both firewalls, the slot's and the host's. */
export const BLOCKED_RANGES: readonly { block: string; reason: string }[] = [
  { block: '0.0.0.0/8', reason: 'this network' },
  { block: '10.0.0.0/8', reason: 'private' },
  { block: '100.64.0.0/10', reason: 'shared by carriers and clouds, metadata services among them' },
  { block: '127.0.0.0/8', reason: 'loopback' },
  { block: '168.63.129.16/32', reason: 'a cloud platform inside its machines' },
  { block: '169.254.0.0/16', reason: 'link-local, metadata services among them' },
  { block: '172.16.0.0/12', reason: 'private' },
  { block: '192.0.0.0/24', reason: 'protocol assignments, metadata services among them' },
  { block: '192.0.2.0/24', reason: 'documentation' },
  { block: '192.88.99.0/24', reason: 'deprecated relay anycast' },
  { block: '192.168.0.0/16', reason: 'private' },
  { block: '198.18.0.0/15', reason: 'benchmarking' },
  { block: '198.51.100.0/24', reason: 'documentation' },
  { block: '203.0.113.0/24', reason: 'documentation' },
  { block: '224.0.0.0/4', reason: 'multicast' },
  { block: '240.0.0.0/4', reason: 'reserved and broadcast' },
];

const blocked = new BlockList();
for (const { block } of BLOCKED_RANGES) {
  const [address = '', prefix] = block.split('/');
  blocked.addSubnet(address, Number(prefix), 'ipv4');
}

export function isBlocked(address: string): boolean {
  return blocked.check(address, 'ipv4');
}
