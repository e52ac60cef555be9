// The org's activity feed, by page, and its export.
import { ACTIVITY_EXPORT, ACTIVITY_PAGE } from '@berth/contract/route/limits.ts';
import type { PageQuery } from '@berth/contract/route/page.ts';
import { readCursor, writeCursor } from '../../rules/page.ts';
import { selectActivity, selectActivityExport, type FeedFilter } from '../../store/activity/feed.ts';
import { isId } from '../../store/database/ids.ts';
import type { ActivityRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';

export type { ActivityRow };

interface FeedPage {
  rows: ActivityRow[];
  nextCursor: string | null;
}

/** A page of the org's feed, newest first. Projects and sandboxes of other orgs match no rows. */
export async function listActivity(context: ServiceContext, filter: FeedFilter, query: PageQuery): Promise<FeedPage> {
  const after = query.after === undefined ? null : readCursor('activity', query.after);
  const { projectId, sandboxId } = filter;
  // Text that is not an id is not queried: it may hold bytes that Postgres rejects.
  const possible =
    (projectId === undefined || isId('project', projectId)) && (sandboxId === undefined || isId('sandbox', sandboxId));
  if (!possible) return { rows: [], nextCursor: null };
  const { rows, next } = await selectActivity(context.db, filter, {
    limit: query.limit ?? ACTIVITY_PAGE.default,
    after,
  });
  return { rows, nextCursor: next && writeCursor('activity', next) };
}

/** Entries behind the cursor, oldest first, each with the cursor that continues behind it. */
export async function exportActivity(
  context: ServiceContext,
  orgId: string,
  { limit, after }: { limit: number; after?: string | undefined },
): Promise<{ row: ActivityRow; cursor: string }[]> {
  const { delaySeconds } = ACTIVITY_EXPORT;
  const found = await selectActivityExport(
    context.db,
    { orgId, delaySeconds },
    { limit, after: after === undefined ? null : readCursor('activityExport', after) },
  );
  return found.map(({ row, place }) => ({ row, cursor: writeCursor('activityExport', place) }));
}
