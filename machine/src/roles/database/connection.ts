// Connections to the embedded PostgreSQL through its socket: readiness, creation of the database,
// connection strings.
import { Client } from 'pg';

/** Name of the database, and of the role that owns everything in the cluster. */
export const DATABASE = 'berth';

/** Connection string for a socket folder, at the path that the client sees. */
export function socketDatabaseUrl(socketFolder: string): string {
  return `postgresql://${DATABASE}@localhost:5432/${DATABASE}?host=${encodeURIComponent(socketFolder)}`;
}

/**
 * Checks if a server accepts connections at the socket; `refuses` covers startup, recovery and
 * shutdown.
 */
export async function ask(socketFolder: string): Promise<'answers' | 'refuses' | 'absent'> {
  const client = connect(socketFolder, 'postgres');
  try {
    await client.connect();
    await client.query('select 1');
    return 'answers';
  } catch (error) {
    const code = (error as { code?: string }).code;
    if (code === 'ENOENT' || code === 'ECONNREFUSED') return 'absent';

    // 57P03: startup, recovery or shutdown. The others: the server exited during the query.
    if (code === '57P03' || code === '57P01' || code === 'ECONNRESET' || code === 'EPIPE' || code === undefined)
      return 'refuses';

    throw error;
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Creates the database `berth` if missing. Safe for concurrent callers. */
export async function ensureDatabase(socketFolder: string): Promise<void> {
  const client = connect(socketFolder, 'postgres');
  await client.connect();
  try {
    const found = await client.query('select 1 from pg_database where datname = $1', [DATABASE]);
    if (found.rowCount === 0) await client.query(`create database ${DATABASE}`);
  } catch (error) {
    // 42P04, 23505: created concurrently by another caller.
    const code = (error as { code?: string }).code;
    if (code !== '42P04' && code !== '23505') throw error;
  } finally {
    await client.end();
  }
}

function connect(socketFolder: string, database: string): Client {
  const client = new Client({
    host: socketFolder,
    port: 5432,
    user: DATABASE,
    database,
    password: '',
    connectionTimeoutMillis: 10_000,
    query_timeout: 10_000,
  });
  // An error outside a query (the server exited) also rejects the next query; without a listener it
  // would end the process.
  client.on('error', () => undefined);
  return client;
}
