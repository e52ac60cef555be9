// New entries of an org's activity feed. A held response waits for notices of commits, and reads
// again now and then: a notice can be lost, or come before an older transaction has ended.
import { setTimeout as sleep } from 'node:timers/promises';
import { invalidField } from '../../rules/coded-error.ts';
import { readCursor, writeCursor } from '../../rules/page.ts';
import { selectFollowing, selectHorizon, type FeedPosition, type FollowFilter } from '../../store/activity/follow.ts';
import type { ActivityRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';
import { mayMatch } from './feed.ts';

/** Delays of the next read: least, also on a busy org, and most. */
const RECHECK_MS = { least: 50, most: 5_000 };

interface Following {
  rows: ActivityRow[];
  cursor: string;
  hasMore: boolean;
}

interface FollowOptions {
  since: string | undefined;
  limit: number;
  holdMs: number;
  signal: AbortSignal;
}

/** Entries committed after the cursor. Projects and sandboxes of other orgs match none. */
export async function followActivity(
  context: ServiceContext,
  filter: FollowFilter,
  { since, limit, holdMs, signal }: FollowOptions,
): Promise<Following> {
  if (since === undefined) return { rows: [], cursor: write(await selectHorizon(context.db)), hasMore: false };

  const from = read(since);
  if (holdMs === 0) return await readFollowing(context, filter, from, limit);
  const ended = AbortSignal.any([signal, context.holds.ending, AbortSignal.timeout(holdMs)]);
  const watch = context.changes.watch(filter.orgId);
  try {
    let recheckMs = RECHECK_MS.most;
    for (;;) {
      const nextAt = performance.now() + RECHECK_MS.least;
      const found = await readFollowing(context, filter, from, limit);
      if (found.rows.length > 0 || ended.aborted) return found;
      const noted = await watch.next(ended, recheckMs);
      recheckMs = noted ? RECHECK_MS.least : Math.min(2 * recheckMs, RECHECK_MS.most);
      await sleep(Math.max(0, nextAt - performance.now()));
    }
  } finally {
    watch.close();
  }
}

async function readFollowing(
  context: ServiceContext,
  filter: FollowFilter,
  from: FeedPosition,
  limit: number,
): Promise<Following> {
  const horizon = await selectHorizon(context.db);
  // Transaction ids of a restored database start again.
  if (BigInt(from.xid) > BigInt(horizon.xid))
    throw invalidField('query.since', 'is not of this database; start again without it');

  const rows = mayMatch(filter) ? await selectFollowing(context.db, filter, { from, horizon, limit: limit + 1 }) : [];
  const last = rows[limit - 1];
  if (rows.length <= limit || last?.xid == null) return { rows, cursor: write(horizon), hasMore: false };
  const { xid, seq } = last;
  return { rows: rows.slice(0, limit), cursor: write({ ...from, xid, seq }), hasMore: true };
}

function write({ atMicroseconds, xid, seq }: FeedPosition): string {
  return writeCursor('activityFollow', { atMicroseconds, tie: `${xid}-${seq}` });
}

function read(since: string): FeedPosition {
  const { atMicroseconds, tie } = readCursor('activityFollow', since, 'query.since');
  const [xid = '', seq = ''] = tie.split('-');
  return { atMicroseconds, xid, seq };
}
