// Lists and counts of an org's sandboxes.
import { sql, type SelectQueryBuilder } from 'kysely';
import type { SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import type { PageRequest, Slice } from '../../rules/page.ts';
import { selectSlice } from '../database/pages.ts';
import type { Database, SandboxRow, Tables } from '../database/schema.ts';
import { isId } from '../database/ids.ts';

export interface SandboxFilter {
  status?: readonly SandboxStatus[] | undefined;
  projectId?: string | undefined;
  endUserId?: string | undefined;
  name?: string | undefined;
  /** Id of a user. */
  createdBy?: string | undefined;
  /** Part of the name, in any case, or start of the id. */
  q?: string | undefined;
  metadata?: Readonly<Record<string, string | number | boolean>> | undefined;
}

interface SandboxOrder {
  at: 'created_at' | 'last_active_at';
  direction: 'asc' | 'desc';
  page: PageRequest | null;
}

/** An org's undeleted sandboxes that match the filter. */
export async function listSandboxes(
  db: Database,
  orgId: string,
  filter: SandboxFilter,
  { at, direction, page }: SandboxOrder,
): Promise<Slice<SandboxRow>> {
  const query = matching(db, orgId, filter).selectAll();
  return await selectSlice(query, { at, tie: 'id', direction }, page);
}

/** Number of an org's undeleted sandboxes that match the filter, by status. */
export async function countSandboxes(
  db: Database,
  orgId: string,
  filter: SandboxFilter,
): Promise<Record<string, number>> {
  const rows = await matching(db, orgId, filter)
    .select(['status', sql<number>`count(*)::integer`.as('count')])
    .groupBy('status')
    .orderBy('status')
    .execute();
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
}

function matching(
  db: Database,
  orgId: string,
  { status, projectId, endUserId, name, createdBy, q, metadata }: SandboxFilter,
): SelectQueryBuilder<Tables, 'sandbox', object> {
  let query = db.selectFrom('sandbox').where('org_id', '=', orgId).where('status', '<>', 'deleted');
  if (status !== undefined) query = query.where('status', 'in', status);
  const none = sql<boolean>`false`;
  if (projectId !== undefined)
    query = isId('project', projectId) ? query.where('project_id', '=', projectId) : query.where(none);
  if (createdBy !== undefined)
    query = isId('user', createdBy) ? query.where('created_by', '=', createdBy) : query.where(none);
  if (endUserId !== undefined) query = query.where('end_user_id', '=', endUserId);
  if (name !== undefined) query = query.where('name', '=', name);
  if (q !== undefined) {
    const text = q.replaceAll(/[\\%_]/g, '\\$&');
    query = query.where((eb) => eb.or([eb('name', 'ilike', `%${text}%`), eb('id', 'like', `${text}%`)]));
  }
  for (const [key, value] of Object.entries(metadata ?? {}))
    query = query.where(sql<boolean>`metadata ->> ${key} = ${String(value)}`);
  return query;
}
