// Where a request to a preview came from, for its app: the address that the service itself knows,
// through proxies that the operator trusts, and never what a caller says.
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, type Socket } from 'node:net';

export class CallerAddress {
  readonly #trusted = new BlockList();
  readonly #peers = new WeakMap<Socket, { address: string; trusted: boolean }>();

  /** Addresses or networks of proxies, as the configuration has them. */
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
    // From the nearest on: what a proxy that is not trusted says of others is worth nothing.
    for (const said of String(headers['x-forwarded-for'] ?? '')
      .split(',')
      .toReversed()) {
      const next = plain(said.trim());
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

/** Without the form that IPv4 has on an IPv6 socket. */
function plain(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice('::ffff:'.length) : address;
}
