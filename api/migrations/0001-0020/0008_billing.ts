// Billing: the provider subscription that a row follows, its periods, the org's guardrails, and
// processed provider events.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table subscription drop constraint subscription_status_check`.execute(db);
  await sql`update subscription set status = 'canceled' where status = 'ended'`.execute(db);
  // Period instants are whole milliseconds, as in JavaScript, so bounds are equal on both sides.
  await sql`
    alter table subscription
      add constraint subscription_status_check check (status in ('active', 'past_due', 'canceled')),
      add column period_anchor timestamptz,
      add column machine_hour_limit double precision check (machine_hour_limit >= 0),
      add column overage_enabled boolean not null default false,
      add column canceled_at timestamptz,
      add column cancels_at timestamptz,
      add column provider_customer_id text unique,
      add column provider_subscription_id text unique,
      add column provider_checkout_id text,
      add column provider_revision integer not null default 0,
      alter column started_at set default date_trunc('milliseconds', now())`.execute(db);
  await sql`update subscription set started_at = date_trunc('milliseconds', started_at)`.execute(db);
  await sql`
    update subscription
    set period_anchor = started_at, canceled_at = case when status = 'canceled' then now() end`.execute(db);
  await sql`
    alter table subscription
      alter column period_anchor set default date_trunc('milliseconds', now()),
      alter column period_anchor set not null`.execute(db);

  // A provider without a confirmed response redelivers its event for days.
  await sql`
    create table payment_event (
      id text primary key,
      kind text not null,
      received_at timestamptz not null default now()
    )`.execute(db);
  await sql`create index payment_event_age on payment_event (received_at)`.execute(db);
}
