// A real PostgreSQL for tests: databases in the server that the files of a run share, or a server
// of the file's own.
import { randomBytes } from 'node:crypto';
import { administer, databaseUrl } from './cluster-server.ts';
import { startCluster, TEMPLATE } from './cluster-template.ts';

export interface TestPostgres {
  /**
   * Makes an empty database, or a copy of `template` (which nobody may be connected to), and
   * returns its URL.
   */
  createDatabase(template?: string): Promise<string>;
  /** Makes a database with the tables of this checkout's migrations, and returns its URL. */
  createMigratedDatabase(): Promise<string>;
  /** Removes the databases; stops a server of the file's own and removes its folder. */
  stop(): Promise<void>;
}

/** A server that no other test file uses. */
export interface OwnPostgres extends TestPostgres {
  /** Ends the server as `kill -9` of its main process does; the others then end by themselves. */
  kill(): Promise<void>;
  /** Starts it again after `kill`; resolves when it answers. */
  start(): Promise<void>;
  /** Process id of the server's main process. */
  pid(): number;
}

/** For tests that neither stop the server nor change what concerns all of it. */
export async function startPostgres(): Promise<TestPostgres> {
  // Set by `berth test`, see shared-cluster.ts.
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
