// Live updates of an org: one visible tab follows its activity feed, and tells the other tabs.
import { BerthError } from '@berth/sdk';
import { isConnectionError, queries } from '../queries/client.ts';
import { isLongList, refreshListed, shortenLists } from '../queries/sandboxes.ts';
import { berth } from '../session/client.ts';
import { connection } from '../session/connection.ts';
import { followFeed } from './feed.ts';
import { whileInView } from './in-view.ts';
import { whileLeading } from './leader.ts';
import { pause } from '../rules/page/pause.ts';
import { allOf, SERVICE, UNSEEN, type Stale } from './stale.ts';

const WAIT_SECONDS = 25;
/** A list that was read a moment before a gap is as good as new. */
const JUST_READ_MS = 30_000;
const channel = new BroadcastChannel('berth.live');

/** Keeps the pages of the org current until the signal aborts. */
export async function live(orgId: string, signal: AbortSignal): Promise<void> {
  channel.addEventListener('message', ({ data }) => refresh(data as Stale[]), { signal });
  signal.addEventListener(
    'abort',
    connection.returns.subscribe(() => void tell([SERVICE])),
  );
  await whileInView(signal, (inView) =>
    whileLeading(`berth.live.${orgId}`, inView, (leading) =>
      followFeed(
        {
          orgId,
          pause,
          now: () => performance.now(),
          since: (cursor, ended) =>
            berth.activity.since(
              cursor,
              { exceptKind: [...UNSEEN] },
              { orgId, signal: ended, ...(cursor === undefined ? {} : { waitSeconds: WAIT_SECONDS }) },
            ),
          onStale: (stale) => {
            connection.worked();
            return tell(stale);
          },
          onGap: () => {
            connection.worked();
            shortenLists(Date.now() - JUST_READ_MS);
            refresh(allOf(orgId), Date.now());
          },
          onError: (error) => {
            if (isConnectionError(error)) connection.failed();
            if (isTemporary(error)) return true;
            refresh(allOf(orgId));
            return false;
          },
        },
        leading,
      ),
    ),
  );
}

/** Refreshes the pages of all tabs. Returns the number of requests of this one. */
function tell(stale: readonly Stale[]): number {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a BroadcastChannel has none
  channel.postMessage(stale);
  return refresh(stale);
}

/**
 * Reads stale queries in view again, and returns their number of requests. With `beforeMs`, only
 * those whose response is older: others have been read meanwhile.
 */
function refresh(stale: readonly Stale[], beforeMs = Infinity): number {
  let requests = 0;
  for (const filter of stale) {
    const found = {
      ...filter,
      predicate: ({ state }: { state: { data: unknown; dataUpdatedAt: number } }) =>
        state.dataUpdatedAt < beforeMs && state.dataUpdatedAt > 0 && !isLongList(state.data),
    };
    const active = document.hidden ? [] : queries.getQueryCache().findAll({ ...found, type: 'active' });
    requests += active.reduce((sum, { state }) => sum + pagesOf(state.data), 0);
    void queries.invalidateQueries({ ...found, refetchType: document.hidden ? 'none' : 'active' });
  }
  refreshListed(
    stale.flatMap(({ queryKey: [noun, id] }) => (noun === 'sandboxes' && typeof id === 'string' ? [id] : [])),
  );
  return requests;
}

const pagesOf = (data: unknown): number => (data as { pages?: unknown[] } | undefined)?.pages?.length ?? 1;

function isTemporary(error: unknown): boolean {
  // 400: the cursor is of another database, or the service is older than this page.
  const { status = 500 } = error instanceof BerthError ? error : {};
  return status === 400 || status === 408 || status === 429 || status >= 500;
}
