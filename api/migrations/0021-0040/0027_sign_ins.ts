// Last use of sign-in sessions, for their list. Earlier ones: their last extension.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table "session" add column "lastUsedAt" timestamptz`.execute(db);
  await sql`update "session" set "lastUsedAt" = "updatedAt"`.execute(db);
  await sql`alter table "session"
    alter column "lastUsedAt" set default now(), alter column "lastUsedAt" set not null`.execute(db);
}
