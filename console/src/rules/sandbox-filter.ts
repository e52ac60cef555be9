// Filter and order of the sandbox list, kept in the page's address: links and reloads keep them.
import { SANDBOX_STATES, type api } from '@berth/sdk';

type Query = NonNullable<api.ListSandboxesData['query']>;
export type SandboxFilter = NonNullable<api.CountSandboxesData['query']>;
export type SandboxListing = SandboxFilter & Pick<Query, 'status' | 'sort'>;

type ListedStatus = NonNullable<Query['status']>[number];
type Sort = NonNullable<Query['sort']>;

export const LISTED_STATUSES = Object.keys(SANDBOX_STATES).filter((status) => status !== 'deleted') as ListedStatus[];
const SORTS: readonly Sort[] = ['-createdAt', 'createdAt', '-lastActiveAt', 'lastActiveAt'];

/** Unknown and empty values of the address count as absent. */
export function readListing(search: URLSearchParams): SandboxListing {
  const [q, projectId, sort] = ['q', 'project', 'sort'].map((name) => search.get(name)?.trim() ?? '');
  const status = LISTED_STATUSES.filter((one) => search.getAll('status').includes(one));
  const known = SORTS.find((one) => one === sort && one !== SORTS[0]);
  return {
    ...(q ? { q } : {}),
    ...(projectId ? { projectId } : {}),
    ...(status.length > 0 ? { status } : {}),
    ...(known === undefined ? {} : { sort: known }),
  };
}

export function writeListing({ q, projectId, status = [], sort }: SandboxListing): URLSearchParams {
  const search = new URLSearchParams();
  if (q) search.set('q', q);
  if (projectId) search.set('project', projectId);
  for (const one of status) search.append('status', one);
  if (sort !== undefined && sort !== SORTS[0]) search.set('sort', sort);
  return search;
}

/** The filter without status and order, for counts. */
export function filterOf({ status: _status, sort: _sort, ...filter }: SandboxListing): SandboxFilter {
  return filter;
}

/** True if the list may lack sandboxes of the org. */
export function isFiltered(listing: SandboxListing): boolean {
  return Object.keys(listing).some((name) => name !== 'sort');
}

/** Adds the status, or takes it away. */
export function toggleStatus({ status = [], ...rest }: SandboxListing, one: string): SandboxListing {
  const chosen = LISTED_STATUSES.filter((other) => (other === one) !== status.includes(other));
  return chosen.length === 0 ? rest : { ...rest, status: chosen };
}
