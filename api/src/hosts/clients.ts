// Clients by host address, kept for the life of the process. The database records the host of each
// sandbox.
import { SharedCapacity } from '@berth/protocol/shared-capacity.ts';
import { HostClient } from './client.ts';

export class HostClients {
  readonly #token: string;
  readonly #streams: SharedCapacity;
  readonly #byUrl = new Map<string, HostClient>();

  /** `streams`: limit of open streams to all hosts together, shared among orgs. */
  constructor(token: string, streams: number) {
    this.#token = token;
    this.#streams = new SharedCapacity(streams);
  }

  /** The client of the host at this address (`unix:/path` or `http://address:port`). */
  at(url: string): HostClient {
    const known = this.#byUrl.get(url);
    if (known !== undefined) return known;
    const client = new HostClient({ url, token: this.#token, streams: this.#streams });
    this.#byUrl.set(url, client);
    return client;
  }

  /** Closes idle connections of all hosts; calls in flight fail. */
  close(): void {
    for (const client of this.#byUrl.values()) client.close();
  }
}
