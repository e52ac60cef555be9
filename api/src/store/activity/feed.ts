// Reads the activity feed. Each page is a single query, served by the index that fits its filters.
// SQL only; activity.ts writes the rows.
import type { PageRequest, Slice } from '../../rules/page.ts';
import { selectSlice } from '../database/pages.ts';
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
