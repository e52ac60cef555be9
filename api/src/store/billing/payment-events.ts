// Processed events of the payment provider, so that each is processed once. SQL only.
import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../database/schema.ts';

/** Longer than the provider's redelivery period. */
const KEPT_DAYS = 60;
/** Old events deleted per new event. More than one, so that deletion keeps up. */
const CLEARED_AT_ONCE = 100;

export async function hasPaymentEvent(db: Database, id: string): Promise<boolean> {
  return (await db.selectFrom('payment_event').select('id').where('id', '=', id).executeTakeFirst()) !== undefined;
}

/**
 * Records the event in the transaction that applies it. Returns false if it is already recorded;
 * waits for a concurrent insert of the same event.
 */
export async function recordPaymentEvent(
  trx: DatabaseTransaction,
  event: { id: string; kind: string },
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await trx
    .insertInto('payment_event')
    .values({ id: event.id, kind: event.kind })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .executeTakeFirst();
  if (numInsertedOrUpdatedRows !== 1n) return false;
  await sql`
    delete from payment_event where id in (
      select id from payment_event where received_at < now() - make_interval(days => ${KEPT_DAYS})
      order by received_at limit ${CLEARED_AT_ONCE} for update skip locked
    )`.execute(trx);
  return true;
}
