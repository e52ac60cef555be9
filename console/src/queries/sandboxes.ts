// Sandboxes of an org. The activity feed says what changed; visible pages poll in case it does not.
import { infiniteQueryOptions, keepPreviousData, queryOptions, type InfiniteData } from '@tanstack/react-query';
import type { api } from '@berth/sdk';
import { pause } from '../rules/page/pause.ts';
import type { SandboxFilter, SandboxListing } from '../rules/sandbox-filter.ts';
import { isMoving } from '../rules/status.ts';
import { berth } from '../session/client.ts';
import { queries } from './client.ts';
import { pagedQuery } from './paged.ts';

const PAGE_SIZE = 100;
const FOUND = 8;
const MOVING_MS = 5_000;
const SETTLED_MS = 300_000;
/** Pause between rows of a long list that are read again one by one. */
const ROW_MS = 500;
/** More changed rows make the list short again. */
const MOST_CHANGED = 50;

type Pages = InfiniteData<api.ListSandboxesResult, unknown>;

/** More pages are too many to read again at each change: `refreshListed` reads changed rows. */
const SHORT_LIST_PAGES = 3;

const paceOf = (sandboxes: readonly api.Sandbox[]): number => (sandboxes.some(isMoving) ? MOVING_MS : SETTLED_MS);

const listsOf = (orgId: string) => ['orgs', orgId, 'sandboxes'] as const;

const isShort = ({ state }: { state: { data: unknown } }): boolean => !isLongList(state.data);

export const sandboxesQuery = (orgId: string, listing: SandboxListing) =>
  infiniteQueryOptions({
    ...pagedQuery(
      [...listsOf(orgId), 'list', listing],
      (page, signal) =>
        berth.raw.listSandboxes({ path: { orgId }, query: { ...listing, ...page, limit: PAGE_SIZE }, signal }),
      ({ sandboxes }) => sandboxes,
    ),
    refetchInterval: ({ state: { data } }) =>
      isLongList(data)
        ? Math.max(SETTLED_MS, MOVING_MS * (data?.pages.length ?? 0))
        : paceOf(data?.pages.flatMap((page) => page.sandboxes) ?? []),
    refetchOnMount: isShort,
    refetchOnWindowFocus: isShort,
  });

/** Whether the cached response is a list that is too long to be read again at each change. */
export function isLongList(data: unknown): boolean {
  const { pages = [] } = (data ?? {}) as Partial<Pages>;
  return pages.length > SHORT_LIST_PAGES && pages.every((page) => 'sandboxes' in page);
}

const longLists = () =>
  queries.getQueryCache().findAll({ type: 'active', predicate: ({ state }) => isLongList(state.data) });

/**
 * Cuts long lists to their first pages, which are then read again with each change.
 * @param beforeMs those that were read later stay
 */
export function shortenLists(beforeMs = Infinity): void {
  for (const { queryKey } of longLists().filter(({ state }) => state.dataUpdatedAt < beforeMs)) {
    queries.setQueryData(queryKey, ({ pages, pageParams }: Pages) => ({
      pages: pages.slice(0, SHORT_LIST_PAGES),
      pageParams: pageParams.slice(0, SHORT_LIST_PAGES),
    }));
    void queries.invalidateQueries({ queryKey, refetchType: document.hidden ? 'none' : 'active' });
  }
}

const changed = new Set<string>();
let isReading = false;

/** Reads these sandboxes again one by one, if a long list in view has them. */
export function refreshListed(ids: readonly string[]): void {
  const pages = longLists().flatMap(({ state }) => (state.data as Pages).pages);
  const listed = new Set(pages.flatMap(({ sandboxes }) => sandboxes.map(({ id }) => id)));
  for (const id of ids) if (listed.has(id)) changed.add(id);
  if (changed.size > MOST_CHANGED || (document.hidden && changed.size > 0)) {
    changed.clear();
    shortenLists();
  } else if (!isReading) {
    void readChanged();
  }
}

async function readChanged(): Promise<void> {
  isReading = true;
  // Sandboxes that change again meanwhile are added to the end.
  for (const sandboxId of changed) {
    changed.delete(sandboxId);
    try {
      storeSandbox((await berth.raw.getSandbox({ path: { sandboxId } })).sandbox);
    } catch {
      // The list is read again by and by.
    }
    await pause(ROW_MS);
  }
  isReading = false;
}

/** The first sandboxes that the service finds by name or id. */
export const foundSandboxesQuery = (orgId: string, q: string) =>
  queryOptions({
    queryKey: [...listsOf(orgId), 'found', q],
    queryFn: async ({ signal }) =>
      (await berth.raw.listSandboxes({ path: { orgId }, query: { q, limit: FOUND }, signal })).sandboxes,
    placeholderData: keepPreviousData,
  });

export const sandboxCountsQuery = (orgId: string, filter: SandboxFilter) =>
  queryOptions({
    queryKey: [...listsOf(orgId), 'counts', filter],
    queryFn: ({ signal }) => berth.raw.countSandboxes({ path: { orgId }, query: filter, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: SETTLED_MS,
  });

export const sandboxQuery = (sandboxId: string) =>
  queryOptions({
    queryKey: ['sandboxes', sandboxId],
    queryFn: async ({ signal }) => (await berth.raw.getSandbox({ path: { sandboxId }, signal })).sandbox,
    refetchInterval: ({ state }) => paceOf(state.data === undefined ? [] : [state.data]),
  });

/** A sandbox of the cache; undefined if no page has shown it. */
export function knownSandbox(sandboxId: string): api.Sandbox | undefined {
  const lists = queries.getQueriesData<Pages>({ predicate: ({ queryKey }) => queryKey[3] === 'list' });
  const listed = lists.flatMap(([, data]) => data?.pages.flatMap((page) => page.sandboxes) ?? []);
  return queries.getQueryData(sandboxQuery(sandboxId).queryKey) ?? listed.find(({ id }) => id === sandboxId);
}

/** Puts a response of the service into the cache, also into the lists of its org that have it. */
export function storeSandbox(sandbox: api.Sandbox): void {
  queries.setQueryData(sandboxQuery(sandbox.id).queryKey, sandbox);
  queries.setQueriesData({ queryKey: [...listsOf(sandbox.orgId), 'list'] }, (pages: Pages | undefined) =>
    pages === undefined
      ? pages
      : {
          ...pages,
          pages: pages.pages.map((page) => ({
            ...page,
            sandboxes: page.sandboxes.map((one) => (one.id === sandbox.id ? sandbox : one)),
          })),
        },
  );
}

/** @param key repeats of the same form return the same sandbox */
export async function createSandbox(orgId: string, key: string, body: api.CreateSandboxData['body']) {
  const headers = { 'Idempotency-Key': key, Prefer: 'respond-async' };
  const { sandbox } = await berth.raw.createSandbox({ path: { orgId }, body, headers });
  storeSandbox(sandbox);
  await queries.invalidateQueries({ queryKey: listsOf(orgId) });
  return sandbox;
}
