// Metrics samples that nothing reads any more are deleted by age, independent of their sandbox.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index metrics_sample_age on metrics_sample (at)`.execute(db);
}
