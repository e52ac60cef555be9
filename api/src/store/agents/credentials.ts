// Rows of model credentials. SQL only.
import { sql } from 'kysely';
import { SANDBOXES_USING_MODELS } from './sessions.ts';
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

/** All of a project, with the time of the read by the database's clock. */
export async function readAgentCredentials(
  db: Database,
  projectId: string,
): Promise<{ asOfMs: number; credentials: AgentCredentialRow[] }> {
  const rows = await db
    .selectFrom(
      sql<{ as_of_ms: number }>`(select trunc(extract(epoch from now()) * 1000)::float8 as as_of_ms)`.as('at'),
    )
    .leftJoin('agent_credential', (join) => join.on('project_id', '=', projectId))
    .selectAll()
    .execute();
  const credentials = rows.filter(({ id }) => id !== null) as AgentCredentialRow[];
  return { asOfMs: rows[0]?.as_of_ms ?? 0, credentials };
}

interface SandboxModelKey {
  sandbox_id: string;
  agent: string;
  endpoint: string;
  revision: number;
}

/** Keys of the agents of the sandboxes with sessions, without the secrets. */
export async function listModelKeys(db: Database, sandboxIds: string[]): Promise<SandboxModelKey[]> {
  return await db
    .selectFrom('sandbox')
    .innerJoin('agent_credential', (join) =>
      join
        .onRef('agent_credential.project_id', '=', 'sandbox.project_id')
        .onRef('agent_credential.agent', '=', 'sandbox.agent'),
    )
    .select(['sandbox.id as sandbox_id', 'agent_credential.agent', 'endpoint', 'revision'])
    .where('sandbox.id', 'in', sandboxIds)
    .where('sandbox.id', 'in', SANDBOXES_USING_MODELS)
    .execute();
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
