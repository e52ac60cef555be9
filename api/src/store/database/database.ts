// Opens the pool on Postgres and the query layer over it. Owns the settings of every connection.
import { Kysely, PostgresDialect } from 'kysely';
import { Pool } from 'pg';
import type { Database, Tables } from './schema.ts';

export interface OpenDatabase {
  db: Database;
  pool: Pool;
}

export interface DatabaseOptions {
  /** `postgres://...`; for a unix socket `postgres://user@/database?host=/folder`. */
  url: string;
  maxConnections: number;
  /** Longest that one statement may run; null for migrations. */
  statementTimeoutMs: number | null;
  /**
   * Told of a connection that broke; the pool makes another. A query that was under way on it
   * rejects besides.
   */
  onIdleError: (error: Error) => void;
}

/** Opens a pool. Nothing is dialled before the first query. Close it with `db.destroy()`. */
export function openDatabase(options: DatabaseOptions): OpenDatabase {
  const pool = new Pool({
    connectionString: options.url,
    max: options.maxConnections,
    connectionTimeoutMillis: 10_000,
    idleTimeoutMillis: 60_000,
    // One whose server, or way there, is gone without a word is found out.
    keepAlive: true,
    application_name: 'berth-api',
    // A lock that is never given, or a transaction left open by a fault, must not stop everyone
    // else.
    ...(options.statementTimeoutMs === null
      ? {}
      : {
          statement_timeout: options.statementTimeoutMs,
          idle_in_transaction_session_timeout: options.statementTimeoutMs,
        }),
  });
  // The pool listens to idle connections only; one that breaks in a transaction, between two
  // queries, would end the process.
  pool.on('connect', (client) => client.on('error', options.onIdleError));
  pool.on('error', options.onIdleError);
  return { db: new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) }), pool };
}
