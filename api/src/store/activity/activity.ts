// Rows of the activity feed. SQL only; the contract defines the events.
import { newId } from '../database/ids.ts';
import type { ActivityKind } from '@berth/contract/route/activity-kinds.ts';
import type { Database } from '../database/schema.ts';

/** Rows of an insert. Postgres accepts 65,535 parameters, of which a row has 12. */
const BATCH = 500;

/**
 * The actor. `session`, `api_key`, `agent_token`: the holder of a credential, by an API call.
 * `system`: the service itself, carrying out a request or finding a VM lost. `operator`: a person
 * on the host.
 */
export type ActivityActor =
  | { kind: 'session' | 'api_key' | 'agent_token'; id: string; userId: string; requestId: string | null }
  | { kind: 'operator'; id: null; userId: null }
  | { kind: 'system'; id: null; userId: null };

export interface ActivitySubject {
  kind:
    | 'org'
    | 'user'
    | 'invitation'
    | 'api_key'
    | 'agent_token'
    | 'sign_in'
    | 'project'
    | 'sandbox'
    | 'preview_link'
    | 'agent_session';
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

/** Inserts a row for each event of a transaction. */
export async function insertActivities(db: Database, activities: readonly NewActivity[]): Promise<void> {
  for (let from = 0; from < activities.length; from += BATCH) {
    await db
      .insertInto('activity')
      .values(activities.slice(from, from + BATCH).map(rowOf))
      .execute();
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
