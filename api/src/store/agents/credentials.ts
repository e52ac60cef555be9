// Rows of model credentials. SQL only.
import type { AgentCredentialRow, Database, DatabaseTransaction } from '../database/schema.ts';

export type { AgentCredentialRow };

/** Id of the row, to which its key is sealed. */
export const agentCredentialId = (projectId: string, agent: string): string => `${projectId}:${agent}`;

export async function findAgentCredential(
  db: Database,
  projectId: string,
  agent: string,
): Promise<AgentCredentialRow | undefined> {
  return await db
    .selectFrom('agent_credential')
    .selectAll()
    .where('id', '=', agentCredentialId(projectId, agent))
    .executeTakeFirst();
}

/** Replaces an earlier row, so that the new one has another revision. */
export async function writeAgentCredential(
  trx: DatabaseTransaction,
  row: { projectId: string; agent: string; endpoint: string; sealed: Buffer },
): Promise<AgentCredentialRow> {
  await deleteAgentCredential(trx, row.projectId, row.agent);
  return await trx
    .insertInto('agent_credential')
    .values({
      id: agentCredentialId(row.projectId, row.agent),
      project_id: row.projectId,
      agent: row.agent,
      endpoint: row.endpoint,
      key_sealed: row.sealed,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Returns false if there was none. */
export async function deleteAgentCredential(
  trx: DatabaseTransaction,
  projectId: string,
  agent: string,
): Promise<boolean> {
  const { numDeletedRows } = await trx
    .deleteFrom('agent_credential')
    .where('id', '=', agentCredentialId(projectId, agent))
    .executeTakeFirst();
  return numDeletedRows > 0n;
}

export async function deleteAgentCredentialsOf(trx: DatabaseTransaction, projectId: string): Promise<void> {
  await trx.deleteFrom('agent_credential').where('project_id', '=', projectId).execute();
}
