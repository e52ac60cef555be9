// Client address reported to apps: the peer of the connection, or the address reported by proxies
// that the operator trusts. Claims of other peers are ignored.
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, type Socket } from 'node:net';

export class CallerAddress {
  readonly #trusted = new BlockList();
  readonly #peers = new WeakMap<Socket, { address: string; trusted: boolean }>();

  /** IP addresses or CIDR blocks of trusted proxies. */
  constructor(trustedProxies: readonly string[]) {
    for (const entry of trustedProxies) {
      const [address = '', bits] = entry.split('/');
      const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
      if (bits === undefined) this.#trusted.addAddress(address, family);
      else this.#trusted.addSubnet(address, Number(bits), family);
    }
  }

  of({ socket, headers }: IncomingMessage): string {
    let peer = this.#peers.get(socket);
    if (peer === undefined) {
      const address = plain(socket.remoteAddress ?? '');
      peer = { address, trusted: this.#trusts(address) };
      this.#peers.set(socket, peer);
    }
    if (!peer.trusted) return peer.address;
    let { address } = peer;
    // Nearest first; stop at the first address that is not a trusted proxy.
    for (const reported of String(headers['x-forwarded-for'] ?? '')
      .split(',')
      .toReversed()) {
      const next = plain(reported.trim());
      if (isIP(next) === 0) break;
      address = next;
      if (!this.#trusts(next)) break;
    }
    return address;
  }

  #trusts(address: string): boolean {
    const version = isIP(address);
    return version !== 0 && this.#trusted.check(address, version === 6 ? 'ipv6' : 'ipv4');
  }
}

/** Strips the prefix of IPv4-mapped IPv6 addresses. */
function plain(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice('::ffff:'.length) : address;
}
