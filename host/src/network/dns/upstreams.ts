// Name servers for guests' questions. Reads resolv.conf, again when it changes.
import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import type { UpstreamSource } from './network-options.ts';
import type { NameServer } from './upstream-query.ts';

const DNS_PORT = 53;

/** Same as the C library. */
const MAX_SERVERS = 3;

/** The file is checked on use, at most this often. */
const CHECK_EVERY_MS = 1_000;

export class Upstreams {
  readonly #source: UpstreamSource;
  readonly #report: (error: unknown) => void;
  #servers: readonly NameServer[] = [];
  #checkedAt = Number.NEGATIVE_INFINITY;
  #version = '';

  /** `report` receives the error if the file cannot be read. */
  constructor(source: UpstreamSource, report: (error: unknown) => void) {
    this.#source = source;
    this.#report = report;
  }

  /** Servers in query order. Empty until the file was read once. */
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
      // Keep the last known servers until the file is readable again.
      this.#version = '';
      this.#report(error);
    }
  }
}

/** Name servers of a resolv.conf, as the C library reads it; without any, the host's own. */
export function nameServersOf(text: string): NameServer[] {
  const servers: NameServer[] = [];
  for (const line of text.split('\n')) {
    const address = /^nameserver\s+(\S+)/.exec(line)?.[1];
    if (address !== undefined && isIP(address) !== 0 && servers.length < MAX_SERVERS)
      servers.push({ address, port: DNS_PORT });
  }
  return servers.length > 0 ? servers : [{ address: '127.0.0.1', port: DNS_PORT }];
}
