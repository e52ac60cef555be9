// The rows of the activity feed. SQL only; which events exist is said in the contract.
import { newId } from '../database/ids.ts';
import type { ActivityKind } from '@berth/contract/route/activity-kinds.ts';
import type { Database } from '../database/schema.ts';

/**
 * Who did it. `session`, `api_key`, `agent_token`: the holder of a credential, by a call. `system`:
 * the service itself, carrying out what somebody asked for or finding a machine lost. `operator`: a
 * person on the machine.
 */
export type ActivityActor =
  | { kind: 'session' | 'api_key' | 'agent_token'; id: string; userId: string; requestId: string | null }
  | { kind: 'operator'; id: null; userId: null }
  | { kind: 'system'; id: null; userId: null };

export interface ActivitySubject {
  kind: 'org' | 'user' | 'invitation' | 'api_key' | 'agent_token' | 'project' | 'sandbox' | 'preview_link';
  id: string;
}

export interface NewActivity {
  orgId: string;
  projectId?: string | undefined;
  sandboxId?: string | undefined;
  actor: ActivityActor;
  kind: ActivityKind;
  /** What it is about; when absent the sandbox, else the project, else the org. */
  subject?: ActivitySubject | undefined;
  /** `reason` among them is shown as the entry's reason. */
  details?: Record<string, unknown>;
}

/** Adds a row, in the transaction of what it tells of. */
export async function insertActivity(db: Database, activity: NewActivity): Promise<void> {
  const subject = activity.subject ?? subjectOf(activity);
  await db
    .insertInto('activity')
    .values({
      id: newId('activity'),
      org_id: activity.orgId,
      project_id: activity.projectId ?? null,
      sandbox_id: activity.sandboxId ?? null,
      actor_kind: activity.actor.kind,
      // A session's token comes and goes; who it was is the user.
      actor_id: activity.actor.kind === 'session' ? null : activity.actor.id,
      actor_user_id: activity.actor.userId,
      kind: activity.kind,
      subject_kind: subject.kind,
      subject_id: subject.id,
      request_id: 'requestId' in activity.actor ? activity.actor.requestId : null,
      details: JSON.stringify(activity.details ?? {}),
    })
    .execute();
}

function subjectOf({ orgId, projectId, sandboxId }: NewActivity): ActivitySubject {
  if (sandboxId !== undefined) return { kind: 'sandbox', id: sandboxId };
  if (projectId !== undefined) return { kind: 'project', id: projectId };
  return { kind: 'org', id: orgId };
}
