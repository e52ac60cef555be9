// Rows of the activity feed. SQL only; the contract defines the events.
import { sql } from 'kysely';
import { CHANGES_CHANNEL } from '../database/changes.ts';
import { newId } from '../database/ids.ts';
import type { ActivitySubjectKind } from '@berth/contract/activity/feed.ts';
import type { ActivityKind } from '@berth/contract/route/activity-kinds.ts';
import type { Database } from '../database/schema.ts';

/**
 * Kinds that a busy platform writes with each request, and that change no resource. Commits with
 * notices queue behind each other, so these have none: followers find them later.
 */
const QUIET = new Set<ActivityKind>([
  'sandbox_connected',
  'sandbox_exec',
  'sandbox_file_link_created',
  'sandbox_file_written',
  'sandbox_metrics_sample',
  'sandbox_process_started',
]);

/** Rows of an insert. Postgres accepts 65,535 parameters, of which a row has 12. */
const BATCH = 500;

/**
 * The actor. `session`, `api_key`, `agent_token`: the holder of a credential, by an API call.
 * `file_link`: the holder of a link; `userId` is its creator's.
 * `system`: the service itself, carrying out a request or finding a VM lost. `operator`: a person
 * on the host.
 */
export type ActivityActor =
  | { kind: 'session' | 'api_key' | 'agent_token' | 'file_link'; id: string; userId: string; requestId: string | null }
  | { kind: 'operator'; id: null; userId: null }
  | { kind: 'system'; id: null; userId: null };

export interface ActivitySubject {
  kind: ActivitySubjectKind;
  id: string;
}

export interface NewActivity {
  orgId: string;
  projectId?: string | undefined;
  sandboxId?: string | undefined;
  actor: ActivityActor;
  kind: ActivityKind;
  /** Defaults to the sandbox, else the project, else the org. */
  subject?: ActivitySubject | undefined;
  /** A `reason` in here is shown as the entry's reason. */
  details?: Record<string, unknown>;
}

/** Inserts a row in the transaction of the event. */
export async function insertActivity(db: Database, activity: NewActivity): Promise<void> {
  await insertActivities(db, [activity]);
}

/** Inserts a row for each event of a transaction. Its commit notifies those who follow the org. */
export async function insertActivities(db: Database, activities: readonly NewActivity[]): Promise<void> {
  for (let from = 0; from < activities.length; from += BATCH) {
    const batch = activities.slice(from, from + BATCH);
    const insert = db.insertInto('activity').values(batch.map(rowOf));
    const notified = batch.some(({ kind }) => !QUIET.has(kind));
    // Postgres sends equal notices of a transaction once.
    await (notified ? insert.returning(sql`pg_notify(${CHANGES_CHANNEL}, org_id)`.as('sent')) : insert).execute();
  }
}

function rowOf(activity: NewActivity) {
  const subject = activity.subject ?? subjectOf(activity);
  return {
    id: newId('activity'),
    org_id: activity.orgId,
    project_id: activity.projectId ?? null,
    sandbox_id: activity.sandboxId ?? null,
    actor_kind: activity.actor.kind,
    // Session tokens are short-lived; the user identifies the actor.
    actor_id: activity.actor.kind === 'session' ? null : activity.actor.id,
    actor_user_id: activity.actor.userId,
    kind: activity.kind,
    subject_kind: subject.kind,
    subject_id: subject.id,
    request_id: 'requestId' in activity.actor ? activity.actor.requestId : null,
    details: JSON.stringify(activity.details ?? {}),
  };
}

function subjectOf({ orgId, projectId, sandboxId }: NewActivity): ActivitySubject {
  if (sandboxId !== undefined) return { kind: 'sandbox', id: sandboxId };
  if (projectId !== undefined) return { kind: 'project', id: projectId };
  return { kind: 'org', id: orgId };
}
