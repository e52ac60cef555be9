// The org's activity feed. Always read in pages: it only grows.
import { ACTIVITY_PAGE } from '@berth/contract/route/limits.ts';
import type { PageQuery } from '@berth/contract/route/page.ts';
import { readCursor, writeCursor } from '../../rules/page.ts';
import { selectActivity, type FeedFilter } from '../../store/activity/feed.ts';
import { isId } from '../../store/database/ids.ts';
import type { ActivityRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';

export type { ActivityRow };

export interface FeedPage {
  rows: ActivityRow[];
  nextCursor: string | null;
}

/**
 * A page of the org's feed, newest first. A project or sandbox that is not the org's, or is none at
 * all, has no rows in it.
 */
export async function listActivity(context: ServiceContext, filter: FeedFilter, query: PageQuery): Promise<FeedPage> {
  const after = query.after === undefined ? null : readCursor('activity', query.after);
  const { projectId, sandboxId } = filter;
  // What cannot be an id is not asked for: it may hold what Postgres cannot read.
  const possible =
    (projectId === undefined || isId('project', projectId)) && (sandboxId === undefined || isId('sandbox', sandboxId));
  if (!possible) return { rows: [], nextCursor: null };
  const { rows, next } = await selectActivity(context.db, filter, {
    limit: query.limit ?? ACTIVITY_PAGE.default,
    after,
  });
  return { rows, nextCursor: next && writeCursor('activity', next) };
}
