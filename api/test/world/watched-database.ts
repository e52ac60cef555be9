// A connection that notes the queries sent through it, and what the database makes of one, for
// tests that hold a read to its index.
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import { Pool } from 'pg';
import type { Database, Tables } from '../../src/store/database/schema.ts';

interface WatchedDatabase {
  /** Destroy it. */
  db: Database;
  /** Every query so far, those of {@link explain} too. */
  queries: CompiledQuery[];
  /** The database's plan for a query, as JSON text; with `run`, of the query as it ran. */
  explain(this: void, query: CompiledQuery, run?: 'run'): Promise<string>;
}

export function openWatched(databaseUrl: string): WatchedDatabase {
  const queries: CompiledQuery[] = [];
  const pool = new Pool({ connectionString: databaseUrl, max: 1 });
  // A connection that is closing as the server stops is told so, and nobody waits for it any more.
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
