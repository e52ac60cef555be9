// The org's activity feed, by page, and its export.
import { ACTIVITY_EXPORT, ACTIVITY_PAGE } from '@berth/contract/route/limits.ts';
import type { PageQuery } from '@berth/contract/route/page.ts';
import { readCursor, readOnePage, writeCursor, type CursorPage } from '../../rules/page.ts';
import { selectActivity, selectActivityExport, type FeedFilter } from '../../store/activity/feed.ts';
import { isId } from '../../store/database/ids.ts';
import type { ActivityRow } from '../../store/database/schema.ts';
import type { ServiceContext } from '../context/context.ts';

export type { ActivityRow };

/** False for text that is no id: it may hold bytes that Postgres rejects. */
export function mayMatch({ projectId, sandboxId }: Pick<FeedFilter, 'projectId' | 'sandboxId'>): boolean {
  return (
    (projectId === undefined || isId('project', projectId)) && (sandboxId === undefined || isId('sandbox', sandboxId))
  );
}

/** A page of the org's feed, newest first. Projects and sandboxes of other orgs match no rows. */
export async function listActivity(
  { db }: ServiceContext,
  filter: FeedFilter,
  { limit = ACTIVITY_PAGE.default, after }: PageQuery,
): Promise<CursorPage<ActivityRow>> {
  return await readOnePage('activity', { limit, after }, async (page) =>
    mayMatch(filter) ? await selectActivity(db, filter, page) : { rows: [], next: null },
  );
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
