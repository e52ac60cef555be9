// Clients by host address, kept for the life of the process. The database records the host of each
// sandbox.
import { createHash } from 'node:crypto';
import { SharedCapacity } from '@berth/protocol/shared-capacity.ts';
import { HostClient } from './client.ts';

export class HostClients {
  #tokens: readonly [string, ...string[]];
  readonly #streams: SharedCapacity;
  readonly #byUrl = new Map<string, HostClient>();

  /**
   * `token`: bearer token of the hosts. `streams`: limit of open streams to all hosts together,
   * shared among orgs.
   */
  constructor(token: string, streams: number) {
    this.#tokens = [token];
    this.#streams = new SharedCapacity(streams);
  }

  /** The client of the host at this address (`unix:/path` or `http://address:port`). */
  at(url: string): HostClient {
    const known = this.#byUrl.get(url);
    if (known !== undefined) return known;
    const client = new HostClient({ url, token: () => this.#tokens[0], streams: this.#streams });
    this.#byUrl.set(url, client);
    return client;
  }

  /** Calls from now on send the first token. Returns true if the tokens changed. */
  useTokens(tokens: readonly [string, ...string[]]): boolean {
    const changed = tokens.join('\n') !== this.#tokens.join('\n');
    this.#tokens = tokens;
    return changed;
  }

  /** Ids of the tokens, the current one first. */
  get tokenIds(): string[] {
    return hostTokenIds(this.#tokens);
  }

  /** Closes idle connections of all hosts; calls in flight fail. */
  close(): void {
    for (const client of this.#byUrl.values()) client.close();
  }
}

/** Ids of tokens; an id discloses nothing about its token. */
export function hostTokenIds(tokens: readonly string[]): string[] {
  return tokens.map((token) => createHash('sha256').update(`berth host-token ${token}`).digest('hex').slice(0, 8));
}
