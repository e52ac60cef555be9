// The current generation of a sign-in session's refresh token. Tokens from before count as
// generation 0.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table "session"
    add column "refreshGeneration" integer not null default 0,
    add column "refreshedAt" timestamptz`.execute(db);
}
