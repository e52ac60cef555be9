// Time of the last proof of identity in each sign-in session, so that old ones can be refused where
// credentials are created. Earlier sessions have that of their sign-in.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table "session" add column "authenticatedAt" timestamptz`.execute(db);
  await sql`update "session" set "authenticatedAt" = "createdAt"`.execute(db);
  await sql`
    alter table "session"
      alter column "authenticatedAt" set default now(),
      alter column "authenticatedAt" set not null`.execute(db);
}
