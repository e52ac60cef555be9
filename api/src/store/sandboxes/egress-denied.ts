// Columns of a sandbox for the attempts that its egress policy refused. SQL only.
import type { DatabaseTransaction } from '../database/schema.ts';

/** Needs the row lock. Notifies no replica: no response has these columns. */
export async function writeEgressDenied(
  trx: DatabaseTransaction,
  sandboxId: string,
  denied: { sinceUnixMs: number; count: number },
  at: Date,
): Promise<void> {
  await trx
    .updateTable('sandbox')
    .set({ egress_denied: JSON.stringify(denied), egress_denied_at: at })
    .where('id', '=', sandboxId)
    .execute();
}
