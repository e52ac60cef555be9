// Egress policies of sandboxes, and the default of a project. Earlier sandboxes keep open egress.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table project add column default_egress jsonb`.execute(db);
  await sql`
    alter table sandbox
      add column egress jsonb not null default '{"mode": "open", "names": [], "ranges": [], "ports": []}',
      add column egress_revision integer not null default 0`.execute(db);
}
