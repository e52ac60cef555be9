// A connection that records its queries and explains them, for tests that require an index.
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import { Pool } from 'pg';
import type { Database, Tables } from '../../src/store/database/schema.ts';

interface WatchedDatabase {
  /** Destroy it. */
  db: Database;
  /** Every query so far, including {@link explain}. */
  queries: CompiledQuery[];
  /** The database's plan of a query, as JSON text; with `run`, after executing it. */
  explain(this: void, query: CompiledQuery, run?: 'run'): Promise<string>;
}

export function openWatched(databaseUrl: string): WatchedDatabase {
  const queries: CompiledQuery[] = [];
  const pool = new Pool({ connectionString: databaseUrl, max: 1 });
  // A closing connection reports the server's stop after its last user is gone.
  pool.on('connect', (client) => client.on('error', () => undefined));
  const db = new Kysely<Tables>({
    dialect: new PostgresDialect({ pool }),
    log: ({ query }) => void queries.push(query),
  });
  return {
    db,
    queries,
    explain: async (query, run) => {
      const options = run === undefined ? 'format json' : 'analyze, format json';
      return JSON.stringify(
        (await db.executeQuery(CompiledQuery.raw(`explain (${options}) ${query.sql}`, [...query.parameters]))).rows,
      );
    },
  };
}
