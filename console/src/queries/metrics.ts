// Resource use of a sandbox: its past, and live readings while a page shows them. Neither is use.
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import type { api } from '@berth/sdk';
import { berth } from '../session/client.ts';
import { queries } from './client.ts';

const LIVE_MS = 2_000;
/** Half an hour; the history has the rest. */
const READINGS = 900;
const HISTORY_MS = 60_000;

export const metricsHistoryQuery = (sandboxId: string, windowSeconds: number) =>
  queryOptions({
    queryKey: ['sandboxes', sandboxId, 'metrics', 'history', windowSeconds],
    queryFn: async ({ signal }) =>
      (await berth.raw.getMetricsHistory({ path: { sandboxId }, query: { windowSeconds }, signal })).history,
    placeholderData: keepPreviousData,
    refetchInterval: HISTORY_MS,
  });

/** The newest readings, oldest first. */
export const liveMetricsQuery = (sandboxId: string) => {
  const queryKey = ['sandboxes', sandboxId, 'metrics', 'live'];
  return queryOptions({
    queryKey,
    queryFn: async ({ signal }) => {
      const { metrics } = await berth.raw.getLiveMetrics({ path: { sandboxId }, signal });
      return [...(queries.getQueryData<api.LiveMetrics[]>(queryKey) ?? []), metrics].slice(-READINGS);
    },
    structuralSharing: false,
    refetchInterval: LIVE_MS,
  });
};
