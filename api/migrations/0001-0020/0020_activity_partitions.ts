// Partitions of the activity feed, by month of `at`, so that old entries leave the disk. The table
// so far becomes the first partition; no row is copied. The last partition has no upper bound: an
// insert never lacks a partition. store/activity/partitions.ts adds and drops partitions.
import { sql, type Kysely } from 'kysely';

const INDEXES = {
  activity_org: 'org_id_at_seq',
  activity_org_kind: 'org_id_kind_at_seq',
  activity_project: 'project_id_at_seq',
  activity_project_kind: 'project_id_kind_at_seq',
  activity_sandbox: 'sandbox_id_at_seq',
};

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table activity rename to activity_first`.execute(db);
  await sql`alter table activity_first rename constraint activity_pkey to activity_first_pkey`.execute(db);
  // Named as Postgres names the indexes of new partitions.
  for (const [name, columns] of Object.entries(INDEXES))
    await sql`alter index ${sql.ref(name)} rename to ${sql.ref(`activity_first_${columns}_idx`)}`.execute(db);

  // A partition takes its identity from the partitioned table, which continues the numbers.
  const { rows } = await sql<{ next: string }>`
    select (coalesce(pg_sequence_last_value(pg_get_serial_sequence('activity_first', 'seq')::regclass), 0) + 1)::text
      as next`.execute(db);
  await sql`alter table activity_first alter column seq drop identity`.execute(db);

  // No primary key: it would need `at`, and another index on every partition. Nothing refers to
  // entries, and their ids are random.
  await sql`create table activity (like activity_first including defaults) partition by range (at)`.execute(db);
  await sql`
    alter table activity
      alter column seq add generated always as identity (start with ${sql.lit(Number(rows[0]?.next))}),
      add constraint activity_org_id_fkey foreign key (org_id) references org (id)`.execute(db);
  await sql`create index activity_org on activity (org_id, at desc, seq desc)`.execute(db);
  await sql`create index activity_org_kind on activity (org_id, kind, at desc, seq desc)`.execute(db);
  await sql`
    create index activity_project on activity (project_id, at desc, seq desc)
    where project_id is not null`.execute(db);
  await sql`
    create index activity_project_kind on activity (project_id, kind, at desc, seq desc)
    where project_id is not null`.execute(db);
  await sql`
    create index activity_sandbox on activity (sandbox_id, at desc, seq desc)
    where sandbox_id is not null`.execute(db);

  // Entries of the future exist if the clock was wrong.
  const bounds = await sql<{ month: Date; name: string }>`
    select month, to_char(month at time zone 'UTC', '"activity_"YYYY_MM') as name
    from (select date_trunc('month', greatest(now(), max(at)), 'UTC') + interval '1 month' as month
      from activity_first) next`.execute(db);
  const { month, name } = bounds.rows[0] ?? { month: new Date(), name: '' };
  const bound = sql.lit(month.toISOString());
  await sql`alter table activity attach partition activity_first for values from (minvalue) to (${bound})`.execute(db);
  await sql`create table ${sql.table(name)} partition of activity for values from (${bound}) to (maxvalue)`.execute(db);
}
