// The name servers that guests' questions are relayed to. Reads resolv.conf, and reads it again
// when it changes.
import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import type { NameServer, UpstreamSource } from './network-options.ts';

const DNS_PORT = 53;

/** As many as the C library uses. */
const MAX_SERVERS = 3;

/** The file is looked at on use, and no more often than this. */
const CHECK_EVERY_MS = 1_000;

export class Upstreams {
  readonly #source: UpstreamSource;
  readonly #report: (error: unknown) => void;
  #servers: readonly NameServer[] = [];
  #checkedAt = Number.NEGATIVE_INFINITY;
  #version = '';

  /** `report` is told why the file could not be read. */
  constructor(source: UpstreamSource, report: (error: unknown) => void) {
    this.#source = source;
    this.#report = report;
  }

  /** The servers to ask, in order. Empty while the file cannot be read. */
  servers(): readonly NameServer[] {
    if ('servers' in this.#source) return this.#source.servers;
    const now = performance.now();
    if (now - this.#checkedAt >= CHECK_EVERY_MS) {
      this.#checkedAt = now;
      this.#read(this.#source.file);
    }
    return this.#servers;
  }

  #read(file: string): void {
    try {
      const { dev, ino, size, mtimeNs } = statSync(file, { bigint: true });
      const version = [dev, ino, size, mtimeNs].join(' ');
      if (version === this.#version) return;
      this.#servers = nameServersOf(readFileSync(file, 'utf8'));
      this.#version = version;
    } catch (error) {
      // Until it can be read again, the servers it named are the best there is.
      this.#version = '';
      this.#report(error);
    }
  }
}

/** The name servers of a resolv.conf, as the C library reads it: without any, the machine's own. */
export function nameServersOf(text: string): NameServer[] {
  const servers: NameServer[] = [];
  for (const line of text.split('\n')) {
    const address = /^nameserver\s+(\S+)/.exec(line)?.[1];
    if (address !== undefined && isIP(address) !== 0 && servers.length < MAX_SERVERS)
      servers.push({ address, port: DNS_PORT });
  }
  return servers.length > 0 ? servers : [{ address: '127.0.0.1', port: DNS_PORT }];
}
