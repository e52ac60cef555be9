// The rows of sandboxes. SQL only: which transition is legal is asked of the contract's state table, through services/sandbox-transition.ts.
import type { SandboxStatus } from '@berth/contract/sandbox-state.ts';
import { sql } from 'kysely';
import { SANDBOX_CHANGES_CHANNEL } from './sandbox-changes.ts';
import type { Database, DatabaseTransaction, NewSandbox, SandboxRow } from './schema.ts';

export async function insertSandbox(db: Database, sandbox: NewSandbox): Promise<SandboxRow> {
  return await db.insertInto('sandbox').values(sandbox).returningAll().executeTakeFirstOrThrow();
}

/** A sandbox with the address of the host its machine is on; null when no host was chosen. */
export type LocatedSandboxRow = SandboxRow & { host_url: string | null };

export async function findSandbox(db: Database, sandboxId: string): Promise<LocatedSandboxRow | undefined> {
  return await db
    .selectFrom('sandbox')
    .leftJoin('host', 'host.id', 'sandbox.host_id')
    .selectAll('sandbox')
    .select('host.url as host_url')
    .where('sandbox.id', '=', sandboxId)
    .executeTakeFirst();
}

/** The row, locked until the transaction ends. */
export async function lockSandbox(trx: DatabaseTransaction, sandboxId: string): Promise<SandboxRow | undefined> {
  return await trx.selectFrom('sandbox').selectAll().where('id', '=', sandboxId).forUpdate().executeTakeFirst();
}

/** An org's sandboxes, newest first, without deleted ones; with `endUserId`, only those tagged with exactly it. */
export async function listSandboxes(db: Database, orgId: string, filter: { endUserId?: string | undefined }): Promise<SandboxRow[]> {
  let query = db.selectFrom('sandbox').selectAll().where('org_id', '=', orgId).where('status', '<>', 'deleted');
  if (filter.endUserId !== undefined) query = query.where('end_user_id', '=', filter.endUserId);
  return await query.orderBy('created_at', 'desc').orderBy('id', 'desc').execute();
}

export interface StatusChange {
  sandboxId: string;
  epoch: number;
  status: SandboxStatus;
  reason: { code: string; message: string } | null;
}

/** Writes a status (and its epoch) and tells every replica when the transaction commits. The caller holds the row's lock. */
export async function writeSandboxStatus(trx: DatabaseTransaction, change: StatusChange): Promise<SandboxRow> {
  const row = await trx
    .updateTable('sandbox')
    .set({
      status: change.status,
      epoch: change.epoch,
      status_reason_code: change.reason?.code ?? null,
      status_reason_message: change.reason?.message ?? null,
      status_changed_at: sql<Date>`now()`,
      updated_at: sql<Date>`now()`,
      ...(change.status === 'deleted' ? { deleted_at: sql<Date>`now()` } : {}),
    })
    .where('id', '=', change.sandboxId)
    .returningAll()
    .executeTakeFirstOrThrow();
  await sql`select pg_notify(${SANDBOX_CHANGES_CHANNEL}, ${change.sandboxId})`.execute(trx);
  return row;
}
