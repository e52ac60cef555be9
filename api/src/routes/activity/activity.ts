// Wire format of the activity feed.
import { exportActivity, listActivity, type ActivityEntry } from '@berth/contract/activity/feed.ts';
import { followActivity } from '@berth/contract/activity/follow.ts';
import {
  exportActivity as readExport,
  listActivity as readFeed,
  type ActivityRow,
} from '../../services/activity/feed.ts';
import { followActivity as readFollowing } from '../../services/activity/follow.ts';
import { bind } from '../../call/bind.ts';

export const activityRoutes = [
  bind(listActivity, async (context, { params, query: { limit, after, ...filter } }) => {
    const { rows, nextCursor } = await readFeed(context, { ...filter, orgId: params.orgId }, { limit, after });
    return { activity: rows.map(viewEntry), nextCursor, hasMore: nextCursor !== null };
  }),
  bind(followActivity, async (context, { params, query, holdMs, signal }) => {
    const { since, limit, kind: kinds, exceptKind: exceptKinds, ...named } = query;
    const filter = { ...named, kinds, exceptKinds, orgId: params.orgId };
    const { rows, ...rest } = await readFollowing(context, filter, { since, limit, holdMs, signal });
    return { activity: rows.map(viewEntry), ...rest };
  }),
  bind(exportActivity, async (context, { params, query }) => {
    const entries = await readExport(context, params.orgId, query);
    return entries.map(({ row, cursor }) => ({ ...viewEntry(row), cursor }));
  }),
];

function viewEntry(row: ActivityRow): ActivityEntry {
  return {
    id: row.id,
    at: row.at.toISOString(),
    kind: row.kind,
    actor: { kind: row.actor_kind, id: row.actor_id, userId: row.actor_user_id },
    subject: { kind: row.subject_kind, id: row.subject_id },
    orgId: row.org_id,
    projectId: row.project_id,
    sandboxId: row.sandbox_id,
    requestId: row.request_id,
    ...viewReason(row.details),
  };
}

/** Moves the reason's text out of the details. Its code, if any, stays there, for programs. */
export function viewReason({ reason, ...details }: Record<string, unknown>): Pick<ActivityEntry, 'reason' | 'details'> {
  if (reason == null) return { reason: null, details };
  if (typeof reason === 'string') return { reason, details };
  const { code, message } = reason as { code?: unknown; message?: unknown };
  if (typeof code === 'string' && typeof message === 'string')
    return { reason: message, details: { ...details, reasonCode: code } };
  return { reason: null, details: { ...details, reason } };
}
