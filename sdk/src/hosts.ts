// Hosts of the installation. Requires a credential of an owner or admin of the operator's org.
import type { Calls } from './calls/calls.ts';
import type { GetHostResult, Host, HostSandbox, ListHostsData, ListHostsResult } from './generated/raw/index.ts';
import type { CallOptions } from './transport/transport.ts';

export type { Host, HostSandbox };

/** `limit` is the page length; `after` the `nextCursor` of the previous page. */
export type HostsQuery = NonNullable<ListHostsData['query']>;
export type HostsPage = ListHostsResult;
/** A host with one page of its sandboxes. */
export type HostDetail = GetHostResult;

export class Hosts {
  readonly #calls: Calls;

  /** Constructed by the SDK. */
  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** Page of the hosts, oldest first, as last known. */
  async list(query: HostsQuery = {}, options: CallOptions = {}): Promise<HostsPage> {
    const { raw, with: set } = this.#calls;
    return await raw.listHosts({ query, ...set(options) });
  }

  /** All hosts across pages: `for await (const host of berth.hosts.all())`. */
  async *all(query: HostsQuery = {}, options: CallOptions = {}): AsyncGenerator<Host, void, undefined> {
    for (let after: string | null | undefined = query.after; after !== null;) {
      const page: HostsPage = await this.list(after === undefined ? query : { ...query, after }, options);
      yield* page.hosts;
      after = page.nextCursor;
    }
  }

  /** Returns a host with one page of its sandboxes, newest first; those of all orgs, by id. */
  async get(hostId: string, query: HostsQuery = {}, options: CallOptions = {}): Promise<HostDetail> {
    const { raw, with: set } = this.#calls;
    return await raw.getHost({ path: { hostId }, query, ...set(options) });
  }
}
