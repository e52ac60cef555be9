// Reads the activity feed. Each page is a single query, served by the index that fits its filters.
// SQL only; activity.ts writes the rows.
import type { ActivityKind } from '@berth/contract/route/activity-kinds.ts';
import { sql } from 'kysely';
import type { PageRequest, Place, Slice } from '../../rules/page.ts';
import { selectPlaced, selectSlice } from '../database/pages.ts';
import type { ActivityRow, Database } from '../database/schema.ts';

/** The org is mandatory, regardless of the other filters. */
export interface FeedFilter {
  orgId: string;
  kind?: string | undefined;
  projectId?: string | undefined;
  sandboxId?: string | undefined;
}

/** Newest first; rows of one transaction by sequence number. */
export async function selectActivity(db: Database, filter: FeedFilter, page: PageRequest): Promise<Slice<ActivityRow>> {
  let query = db.selectFrom('activity').selectAll().where('org_id', '=', filter.orgId);
  if (filter.kind !== undefined) query = query.where('kind', '=', filter.kind);
  if (filter.projectId !== undefined) query = query.where('project_id', '=', filter.projectId);
  if (filter.sandboxId !== undefined) query = query.where('sandbox_id', '=', filter.sandboxId);
  return await selectSlice(query, { at: 'at', tie: 'seq', direction: 'desc' }, page);
}

/** Newest first: those of the kinds among the sandbox's last `within` entries. */
export async function selectLatestOfKinds(
  db: Database,
  sandboxId: string,
  { kinds, within, limit }: { kinds: readonly ActivityKind[]; within: number; limit: number },
): Promise<ActivityRow[]> {
  return await db
    .selectFrom((from) =>
      from
        .selectFrom('activity')
        .selectAll()
        .where('sandbox_id', '=', sandboxId)
        .orderBy('at', 'desc')
        .orderBy('seq', 'desc')
        .limit(within)
        .as('latest'),
    )
    .selectAll()
    .where('kind', 'in', [...kinds])
    .orderBy('at', 'desc')
    .orderBy('seq', 'desc')
    .limit(limit)
    .execute();
}

/** Oldest first; only entries older than `delaySeconds`. */
export async function selectActivityExport(
  db: Database,
  { orgId, delaySeconds }: { orgId: string; delaySeconds: number },
  page: PageRequest,
): Promise<{ row: ActivityRow; place: Place }[]> {
  const query = db
    .selectFrom('activity')
    .selectAll()
    .where('org_id', '=', orgId)
    .where('at', '<', sql<Date>`now() - ${delaySeconds} * interval '1 second'`);
  return await selectPlaced(query, { at: 'at', tie: 'seq', direction: 'asc' }, page);
}
