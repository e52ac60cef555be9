// Samples of metrics that nothing reads any more are removed by their age, whatever becomes of
// their sandbox.
import { sql, type Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index metrics_sample_age on metrics_sample (at)`.execute(db);
}
