// Activity of an org or of one of its sandboxes, newest first.
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import type { api } from '@berth/sdk';
import { berth } from '../session/client.ts';
import { pagedQuery, whileShort } from './paged.ts';

const PAGE_SIZE = 50;
const NEWEST = 10;
/** Some kinds are in no live update. */
const POLL_MS = 90_000;

type ActivityFilter = Pick<NonNullable<api.ListActivityData['query']>, 'kind' | 'sandboxId'>;

export const activityQuery = (orgId: string, filter: ActivityFilter) =>
  infiniteQueryOptions({
    ...pagedQuery(
      ['orgs', orgId, 'activity', filter],
      (page, signal) =>
        berth.raw.listActivity({ path: { orgId }, query: { ...filter, ...page, limit: PAGE_SIZE }, signal }),
      ({ activity }) => activity,
    ),
    refetchInterval: whileShort(POLL_MS),
  });

export const newestQuery = (orgId: string) =>
  queryOptions({
    queryKey: ['orgs', orgId, 'activity', 'newest'],
    queryFn: async ({ signal }) =>
      (await berth.raw.listActivity({ path: { orgId }, query: { limit: NEWEST }, signal })).activity,
  });

const RUN_KINDS = [
  ...(['sandbox_created', 'sandbox_running', 'sandbox_ready', 'sandbox_woken'] as const),
  ...(['sandbox_connected', 'sandbox_exec', 'preview_link_created'] as const),
];

/** Entries of the first run, of a sandbox with too many for one page. */
export const runQuery = (orgId: string, sandboxId: string) =>
  queryOptions({
    queryKey: ['orgs', orgId, 'activity', 'run', sandboxId],
    queryFn: async ({ signal }) => {
      const list = (kind: (typeof RUN_KINDS)[number]) =>
        berth.raw.listActivity({ path: { orgId }, query: { sandboxId, kind, limit: PAGE_SIZE }, signal });
      return (await Promise.all(RUN_KINDS.map(list))).flatMap(({ activity }) => activity);
    },
  });

/** The newest create of a sandbox in the org; null if it has had none. */
export const createdQuery = (orgId: string) =>
  queryOptions({
    queryKey: ['orgs', orgId, 'activity', 'created'],
    queryFn: async ({ signal }) => {
      const query = { kind: 'sandbox_created', limit: 1 } as const;
      const { activity } = await berth.raw.listActivity({ path: { orgId }, query, signal });
      return activity[0] ?? null;
    },
  });
