// Sums of machine time by UTC day and by billing period: usage queries of an org take bounded time,
// however many intervals it has. docs/decisions/metering.md explains how the sums stay correct.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // Closed intervals that are in no sum yet. A row is inserted in the transaction that closes the
  // interval and deleted in the one that sums it.
  await sql`
    create table usage_unrolled (
      org_id text not null,
      seq bigint generated always as identity,
      interval_id text not null,
      primary key (org_id, seq)
    )`.execute(db);
  await sql`
    insert into usage_unrolled (org_id, interval_id)
    select org_id, id from usage_interval where not upper_inf(during) order by upper(during)`.execute(db);

  // A trigger queues every closed interval once, whichever statement closes it. Closed intervals do
  // not change.
  await sql`
    create function usage_interval_closed() returns trigger language plpgsql as $$
    begin
      if tg_op <> 'INSERT' and not upper_inf(old.during) then
        raise exception 'the usage interval % is closed and does not change', old.id
          using errcode = 'restrict_violation';
      end if;
      if tg_op <> 'DELETE' and not upper_inf(new.during) then
        insert into usage_unrolled (org_id, interval_id) values (new.org_id, new.id);
      end if;
      return null;
    end $$`.execute(db);
  await sql`
    create trigger usage_interval_closed after insert or update or delete on usage_interval
    for each row execute function usage_interval_closed()`.execute(db);
  await sql`create index usage_interval_running on usage_interval (org_id) where upper_inf(during)`.execute(db);

  // Starts of an org's billing periods. Days are cut there too, so that a period consists of whole
  // spans.
  await sql`create table usage_cut (org_id text not null, at timestamptz not null, primary key (org_id, at))`.execute(
    db,
  );

  // A span of summed closed intervals: a UTC day, a part of one between two cuts, or the time
  // between two consecutive cuts. first_at and last_at enclose the summed time: a window that
  // encloses them can use the sums, even if it misses other parts of the span.
  await sql`
    create table usage_span (
      org_id text not null,
      level text not null check (level in ('day', 'period')),
      starts_at timestamptz not null,
      ends_at timestamptz not null,
      first_at timestamptz not null,
      last_at timestamptz not null,
      primary key (org_id, level, starts_at),
      check (starts_at <= first_at and first_at < last_at and last_at <= ends_at)
    )`.execute(db);
  await sql`
    create table usage_total (
      org_id text not null,
      level text not null,
      starts_at timestamptz not null,
      project_id text not null,
      end_user_id text,
      vcpu integer not null,
      memory_gb integer not null,
      disk_gb integer not null,
      ms bigint not null check (ms > 0),
      constraint usage_total_once unique nulls not distinct
        (org_id, level, starts_at, project_id, end_user_id, vcpu, memory_gb, disk_gb)
    )`.execute(db);
}
