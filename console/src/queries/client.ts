// Cache of responses. The SDK retries reads, so the cache does not.
// A failed refetch keeps the data.
import { QueryCache, QueryClient, type QueryKey } from '@tanstack/react-query';
import { BerthError } from '@berth/sdk';
import { connection } from '../session/connection.ts';

const FRESH_MS = 2_000;

export const queries = new QueryClient({
  queryCache: new QueryCache({
    onSuccess: () => connection.worked(),
    onError: (error) => {
      if (isConnectionError(error)) connection.failed();
    },
  }),
  defaultOptions: {
    // The browser's notion of being online says nothing about a service on the own network.
    queries: { retry: false, staleTime: FRESH_MS, networkMode: 'always' },
    mutations: { retry: false, networkMode: 'always' },
  },
});

/** Failures of the connection or the service, not of the request. */
export function isConnectionError(error: unknown): boolean {
  return (
    error instanceof BerthError &&
    (['connection_failed', 'timeout', 'invalid_answer'].includes(error.code) || (error.status ?? 0) >= 500)
  );
}

/** Makes a change, then reads again what it makes stale: a lost response may have had an effect. */
export async function change<T>(request: Promise<T>, ...stale: readonly QueryKey[]): Promise<T> {
  try {
    return await request;
  } finally {
    await Promise.all(stale.map((queryKey) => queries.invalidateQueries({ queryKey })));
  }
}
