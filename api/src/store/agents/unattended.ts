// Agent sessions whose agent may act without approval. SQL only.
import { statusesThat } from '@berth/contract/sandboxes/state.ts';
import type { Database } from '../database/schema.ts';

export async function markUnattended(db: Database, sessionId: string): Promise<void> {
  await db.updateTable('agent_session').set({ unattended: true }).where('id', '=', sessionId).execute();
}

/** Unmarks the session, unless its project lets agents act without approval again. */
export async function unmarkUnattended(db: Database, sessionId: string): Promise<void> {
  await db
    .updateTable('agent_session')
    .set({ unattended: false })
    .where('id', '=', sessionId)
    .where('project_id', 'in', (where) =>
      where.selectFrom('project').select('id').where('project.agent_approvals', '=', 'ask'),
    )
    .execute();
}

export interface UnattendedSession {
  id: string;
  sandbox_id: string;
  org_id: string;
  host_url: string;
}

/** Ready sessions in awake sandboxes whose agent may act without approval against their project. */
export async function listUnattended(db: Database): Promise<UnattendedSession[]> {
  return await db
    .selectFrom('agent_session')
    .innerJoin('project', 'project.id', 'agent_session.project_id')
    .innerJoin('sandbox', 'sandbox.id', 'agent_session.sandbox_id')
    .innerJoin('host', 'host.id', 'sandbox.host_id')
    .select(['agent_session.id', 'agent_session.sandbox_id', 'agent_session.org_id', 'host.url as host_url'])
    .where('agent_session.unattended', '=', true)
    .where('agent_session.bridge_state', '=', 'ready')
    .where('project.agent_approvals', '=', 'ask')
    .where('sandbox.status', 'in', statusesThat('awake'))
    .execute();
}
