// Sandboxes whose agent sessions the service looks at by itself.
import { statusesThat } from '@berth/contract/sandboxes/state.ts';
import type { Database } from '../database/schema.ts';

/** An awake sandbox with agent sessions. */
export interface WatchedSandbox {
  id: string;
  epoch: number;
  host_url: string;
  last_active_at: Date;
}

/**
 * Lists sandboxes with an active turn, or a terminal in which a person may begin one; or those with
 * a ready session and neither.
 */
export async function listSandboxesWithSessions(
  db: Database,
  { withTurns }: { withTurns: boolean },
): Promise<WatchedSandbox[]> {
  return await db
    .selectFrom('sandbox')
    .innerJoin('host', 'host.id', 'sandbox.host_id')
    .select(['sandbox.id', 'sandbox.epoch', 'host.url as host_url', 'sandbox.last_active_at'])
    .where('sandbox.status', 'in', statusesThat('awake'))
    .where((where) => {
      const turns = where.exists(
        where
          .selectFrom('agent_turn')
          .select('agent_turn.id')
          .whereRef('agent_turn.sandbox_id', '=', 'sandbox.id')
          .where('agent_turn.ended_at', 'is', null)
          .where('agent_turn.dispatched_at', 'is not', null),
      );
      const ready = where
        .selectFrom('agent_session')
        .select('agent_session.id')
        .whereRef('agent_session.sandbox_id', '=', 'sandbox.id')
        .where('agent_session.gone_at', 'is', null)
        .where('agent_session.bridge_state', '=', 'ready');
      const busy = where.or([turns, where.exists(ready.where('agent_session.conversation', 'is not', null))]);
      return withTurns ? busy : where.and([where.exists(ready), where.not(busy)]);
    })
    .execute();
}
