// Opens the Postgres pool and the query layer. Owns the settings of every connection.
import { Kysely, PostgresDialect } from 'kysely';
import { Pool } from 'pg';
import type { Database, Tables } from './schema.ts';

interface OpenDatabase {
  db: Database;
  pool: Pool;
}

interface DatabaseOptions {
  /** `postgres://...`; for a UNIX socket `postgres://user@/database?host=/folder`. */
  url: string;
  maxConnections: number;
  /** Statement timeout; null for migrations. */
  statementTimeoutMs: number | null;
  /**
   * Called when a connection breaks. The pool replaces it; a query in flight on it also rejects.
   */
  onIdleError: (error: Error) => void;
}

/** Opens a pool. Connects with the first query. Close it with `db.destroy()`. */
export function openDatabase(options: DatabaseOptions): OpenDatabase {
  const pool = new Pool({
    connectionString: options.url,
    max: options.maxConnections,
    connectionTimeoutMillis: 10_000,
    idleTimeoutMillis: 60_000,
    // TCP keepalive: detect silently dead connections.
    keepAlive: true,
    application_name: 'berth-api',
    // Timeouts keep a stuck lock or a leaked transaction from blocking everything else.
    ...(options.statementTimeoutMs === null
      ? {}
      : {
          statement_timeout: options.statementTimeoutMs,
          idle_in_transaction_session_timeout: options.statementTimeoutMs,
        }),
  });
  // The pool handles errors of idle connections only. An unhandled error between two queries of a
  // transaction would end the process.
  pool.on('connect', (client) => client.on('error', options.onIdleError));
  pool.on('error', options.onIdleError);
  return { db: new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) }), pool };
}
