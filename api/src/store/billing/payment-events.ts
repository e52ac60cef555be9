// The payment provider's events that were dealt with, so that each is dealt with once. SQL only.
import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../database/schema.ts';

/** Longer than the provider can send an event again. */
const KEPT_DAYS = 60;
/** How many old ones go with a new one: more than come. */
const CLEARED_AT_ONCE = 100;

export async function hasPaymentEvent(db: Database, id: string): Promise<boolean> {
  return (await db.selectFrom('payment_event').select('id').where('id', '=', id).executeTakeFirst()) !== undefined;
}

/**
 * Notes the event in the transaction of what it brings about. False when it is there already; one
 * that is being noted at the same time is waited for.
 */
export async function notePaymentEvent(
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
