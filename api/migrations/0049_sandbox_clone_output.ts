// Last output of git in the clone of a sandbox's repository.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  // Not in the row of the sandbox, which lists read.
  await sql`
    create table sandbox_clone_output (
      sandbox_id text primary key references sandbox (id) on delete cascade,
      output text not null,
      truncated boolean not null
    )`.execute(db);
}
