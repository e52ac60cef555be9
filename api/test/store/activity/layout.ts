// Partitions of the activity feed as a test needs them, without entries.
import { sql } from 'kysely';
import { listActivityPartitions } from '../../../src/store/activity/partitions.ts';
import type { Database } from '../../../src/store/database/schema.ts';

/** Replaces all partitions by those between the bounds, and drops all entries. */
export async function layOutPartitions(db: Database, bounds: readonly Date[]): Promise<void> {
  for (const { name } of await listActivityPartitions(db)) await sql`drop table ${sql.table(name)}`.execute(db);
  const edges = ['minvalue', ...bounds.map((bound) => `'${bound.toISOString()}'`), 'maxvalue'];
  for (const [at, from] of edges.slice(0, -1).entries()) {
    const name = at === 0 ? 'activity_first' : partitionName(bounds[at - 1]);
    await sql`
      create table ${sql.table(name)} partition of activity
      for values from (${sql.raw(from)}) to (${sql.raw(edges[at + 1] ?? '')})`.execute(db);
  }
}

/** First day of the month that is `months` from now, in UTC. */
export function month(months: number): Date {
  const now = new Date();
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months));
}

/** Name of the partition that begins with the month. */
export function partitionName(from: Date = month(0)): string {
  return `activity_${from.toISOString().slice(0, 7).replace('-', '_')}`;
}
