// Queries of an installation's database, for data that no route shows (activity, usage intervals).
// Read-only, except for changes that a test states.
import { join } from 'node:path';
import { socketDatabaseUrl } from '@berth/machine/roles/database/connection.ts';
import { Client, type QueryResultRow } from 'pg';

const DEADLINE_MS = 60_000;

/** Rows of one query on the database of a data folder. */
export async function queryDatabase<Row extends QueryResultRow>(
  dataFolder: string,
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  const client = new Client({
    connectionString: socketDatabaseUrl(join(dataFolder, 'postgres', 'socket')),
    connectionTimeoutMillis: DEADLINE_MS,
    query_timeout: DEADLINE_MS,
  });
  // A connection error between queries also rejects the next query.
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<Row>(text, values)).rows;
  } finally {
    await client.end();
  }
}

interface ActivityEntry extends QueryResultRow {
  kind: string;
  details: Record<string, unknown>;
  at: Date;
}

/** Activity of a sandbox, oldest first. */
export async function activityOf(dataFolder: string, sandboxId: string): Promise<ActivityEntry[]> {
  return await queryDatabase<ActivityEntry>(
    dataFolder,
    'select kind, details, at from activity where sandbox_id = $1 order by at, id',
    [sandboxId],
  );
}

export interface UsageInterval extends QueryResultRow {
  id: string;
  sandboxId: string;
  fromMs: number;
  /** null while open. */
  toMs: number | null;
}

/** Metered intervals of all sandboxes, in milliseconds since 1970, ordered by sandbox and time. */
export async function usageIntervals(dataFolder: string): Promise<UsageInterval[]> {
  return await queryDatabase<UsageInterval>(
    dataFolder,
    `select id, sandbox_id as "sandboxId",
       (extract(epoch from lower(during)) * 1000)::float8 as "fromMs",
       (extract(epoch from upper(during)) * 1000)::float8 as "toMs"
     from usage_interval where not isempty(during) order by sandbox_id, lower(during)`,
  );
}
