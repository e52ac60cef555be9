// The rows of the activity feed. SQL only; which events exist is said in the contract.
import { newId } from './ids.ts';
import type { ActivityKind } from '@berth/contract/activity.ts';
import type { Database } from './schema.ts';

/** Who did it. `system`: the service itself, carrying out what somebody asked for or finding a machine lost. `operator`: a person on the machine. */
export type ActivityActor =
  | { kind: 'api_key'; id: string; userId: string }
  | { kind: 'operator'; id: null; userId: null }
  | { kind: 'system'; id: null; userId: null };

export interface NewActivity {
  orgId: string;
  projectId?: string | undefined;
  sandboxId?: string | undefined;
  actor: ActivityActor;
  kind: ActivityKind;
  details?: Record<string, unknown>;
}

/** Adds a row, in the transaction of what it tells of. */
export async function insertActivity(db: Database, activity: NewActivity): Promise<void> {
  await db
    .insertInto('activity')
    .values({
      id: newId('activity'),
      org_id: activity.orgId,
      project_id: activity.projectId ?? null,
      sandbox_id: activity.sandboxId ?? null,
      actor_kind: activity.actor.kind,
      actor_id: activity.actor.id,
      actor_user_id: activity.actor.userId,
      kind: activity.kind,
      details: JSON.stringify(activity.details ?? {}),
    })
    .execute();
}
