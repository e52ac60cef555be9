// Hosts and their sandboxes, from rows alone: a host that does not respond delays no list.
import { CodedError } from '../../rules/coded-error.ts';
import { readOnePage, type CursorPage } from '../../rules/page.ts';
import * as store from '../../store/hosts/list.ts';
import type { ServiceContext } from '../context/context.ts';
import { HOST_SEEN_WITHIN_MS } from './placement.ts';

export type { HostSandboxRow, ListedHostRow } from '../../store/hosts/list.ts';

interface PageQuery {
  limit: number;
  after?: string | undefined;
}

/** Other text names no host, and may hold bytes that Postgres rejects. */
const HOST_ID = /^[\w-]{1,100}$/;

export async function listHosts(
  { db }: Pick<ServiceContext, 'db'>,
  query: PageQuery,
): Promise<CursorPage<store.ListedHostRow>> {
  return await readOnePage('hosts', query, (page) => store.listHosts(db, { seenWithinMs: HOST_SEEN_WITHIN_MS }, page));
}

/** A host with a page of its sandboxes. Throws `host_not_found`. */
export async function getHost(
  { db }: Pick<ServiceContext, 'db'>,
  hostId: string,
  query: PageQuery,
): Promise<{ host: store.ListedHostRow; sandboxes: CursorPage<store.HostSandboxRow> }> {
  const filter = { seenWithinMs: HOST_SEEN_WITHIN_MS, hostId };
  const [host] = HOST_ID.test(hostId) ? (await store.listHosts(db, filter, { limit: 1, after: null })).rows : [];
  if (host === undefined) throw new CodedError('host_not_found', 'there is no host with this id');
  const sandboxes = await readOnePage('hostSandboxes', query, (page) => store.listHostSandboxes(db, hostId, page));
  return { host, sandboxes };
}
