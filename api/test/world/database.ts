// A real PostgreSQL for tests: databases in the server shared by the files of a run, or a separate
// server.
import { randomBytes } from 'node:crypto';
import { administer, databaseUrl } from './cluster/server.ts';
import { startCluster, TEMPLATE } from './cluster/template.ts';

export interface TestPostgres {
  /**
   * Creates an empty database, or a copy of `template` (which must have no connections), and
   * returns its URL.
   */
  createDatabase(template?: string): Promise<string>;
  /** Creates a database migrated to this checkout, and returns its URL. */
  createMigratedDatabase(): Promise<string>;
  /** Removes the databases; a separate server is stopped and its folder removed. */
  stop(): Promise<void>;
}

/** A server used by no other test file. */
export interface OwnPostgres extends TestPostgres {
  /** Kills the server's main process with `kill -9`; its other processes then exit. */
  kill(): Promise<void>;
  /** Restarts after `kill`; resolves when the server responds. */
  start(): Promise<void>;
  /** Process id of the server's main process. */
  pid(): number;
}

/** For tests that neither stop the server nor change server-wide state. */
export async function startPostgres(): Promise<TestPostgres> {
  // Set by `berth test`, see cluster/shared.ts.
  const server = process.env['BERTH_TEST_CLUSTER'];
  if (server === undefined) return await startOwnPostgres();

  const created: string[] = [];
  return {
    ...creator(server, created),
    stop: async () => {
      for (const name of created.splice(0)) await administer(server, `drop database if exists "${name}" with (force)`);
    },
  };
}

export async function startOwnPostgres(): Promise<OwnPostgres> {
  const server = await startCluster();
  return {
    ...creator(server.folder, []),
    kill: () => server.end('SIGKILL'),
    start: () => server.start(),
    pid: () => server.pid(),
    stop: () => server.remove(),
  };
}

function creator(server: string, created: string[]): Omit<TestPostgres, 'stop'> {
  const create = async (template?: string): Promise<string> => {
    const name = `test_${randomBytes(6).toString('hex')}`;
    created.push(name);
    await administer(server, `create database "${name}"${template === undefined ? '' : ` template "${template}"`}`);
    return databaseUrl(server, name);
  };
  return {
    createDatabase: async (template) =>
      await create(template === undefined ? undefined : new URL(template).pathname.slice(1)),
    createMigratedDatabase: () => create(TEMPLATE),
  };
}
