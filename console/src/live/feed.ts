// Follows the activity feed of an org, and reports what its entries make stale. Knows no browser.
import type { NewActivity } from '@berth/sdk';
import { Pace } from './pace.ts';
import { staleBy, type Stale } from './stale.ts';

interface FeedParts {
  orgId: string;
  /** Sends a request; with a cursor, held until there are entries. */
  since: (cursor: string | undefined, signal: AbortSignal) => Promise<NewActivity>;
  /** Returns the number of requests that it sends. */
  onStale: (stale: readonly Stale[]) => number;
  /** Entries before this moment may not have been seen. */
  onGap: () => void;
  /** Returns true if the feed can be read again later. */
  onError: (error: unknown) => boolean;
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Milliseconds of a monotonic clock. */
  now: () => number;
}

/** Resolves when the signal aborts, or after a final error. */
export async function followFeed(parts: FeedParts, signal: AbortSignal): Promise<void> {
  const { orgId, since, onStale, onGap, onError, pause, now } = parts;
  const pace = new Pace();
  let cursor: string | undefined;
  while (!signal.aborted) {
    const startedMs = now();
    try {
      const found = await since(cursor, signal);
      const isFirst = cursor === undefined;
      let requests = 1;
      if (isFirst) onGap();
      else if (!found.hasMore && found.activity.length > 0) requests += onStale(staleBy(orgId, found.activity));
      // Too many entries are not read one by one.
      cursor = found.hasMore ? undefined : found.cursor;
      if (!isFirst) await pause(pace.after(now() - startedMs, requests), signal);
    } catch (error) {
      if (signal.aborted || !onError(error)) return;
      cursor = undefined;
      await pause(pace.afterFailure(), signal);
    }
  }
}
