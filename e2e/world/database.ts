// Questions to an installation's own database, past the API: for what no route shows yet (activity,
// usage intervals). Reads; changes nothing but what a test says it does.
import { join } from 'node:path';
import { socketDatabaseUrl } from '@berth/machine/roles/database/connection.ts';
import { Client, type QueryResultRow } from 'pg';

const DEADLINE_MS = 10_000;

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
  // What ends a connection outside a query also rejects the query that follows.
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<Row>(text, values)).rows;
  } finally {
    await client.end();
  }
}

export interface ActivityEntry extends QueryResultRow {
  kind: string;
  details: Record<string, unknown>;
  at: Date;
}

/** What happened to a sandbox, oldest first. */
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
  /** null while it is open. */
  toMs: number | null;
}

/** The metered time of all sandboxes, in milliseconds since 1970, ordered by sandbox and time. */
export async function usageIntervals(dataFolder: string): Promise<UsageInterval[]> {
  return await queryDatabase<UsageInterval>(
    dataFolder,
    `select id, sandbox_id as "sandboxId",
       (extract(epoch from lower(during)) * 1000)::float8 as "fromMs",
       (extract(epoch from upper(during)) * 1000)::float8 as "toMs"
     from usage_interval where not isempty(during) order by sandbox_id, lower(during)`,
  );
}
