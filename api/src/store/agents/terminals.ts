// Terminal sessions: at most one of a sandbox. SQL only.
import type { Database, SandboxRow } from '../database/schema.ts';
import { newAgentSession, type AgentSessionRow, type SessionCreator } from './sessions.ts';

/** The terminal session of the sandbox; inserted if there is none. */
export async function findOrInsertTerminal(
  db: Database,
  sandbox: SandboxRow,
  creator: SessionCreator,
): Promise<{ session: AgentSessionRow; isNew: boolean }> {
  for (;;) {
    const found = await db
      .selectFrom('agent_session')
      .selectAll()
      .where('sandbox_id', '=', sandbox.id)
      .where('surface', '=', 'terminal')
      .where('gone_at', 'is', null)
      .executeTakeFirst();
    if (found !== undefined) return { session: found, isNew: false };

    const inserted = await db
      .insertInto('agent_session')
      .values(newAgentSession(sandbox, creator, 'terminal'))
      .onConflict((conflict) => conflict.doNothing())
      .returningAll()
      .executeTakeFirst();
    if (inserted !== undefined) return { session: inserted, isNew: true };
  }
}
