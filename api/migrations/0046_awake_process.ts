// Whether a process was started that keeps its sandbox awake, until the idle worker finds none.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table sandbox add column has_awake_process boolean not null default false`.execute(db);
}
