// A real PostgreSQL for tests: the embedded binaries, a data folder of its own below the system's
// temporary folder, a unix socket only.
import { randomBytes } from 'node:crypto';
import { defaultCacheFolder } from '@berth/machine/config/folders.ts';
import { ensurePostgresBinaries } from '@berth/machine/roles/database/binaries.ts';
import { ClusterServer } from './cluster-server.ts';
import { fillCluster, TEMPLATES } from './cluster-template.ts';

export interface TestPostgres {
  /**
   * Makes an empty database, or a copy of `template` (which nobody may be connected to), and
   * returns its URL.
   */
  createDatabase(template?: string): Promise<string>;
  /**
   * Makes a database with the tables, with `durable` also those of the durable work, as the
   * migrations of this checkout make them, and returns its URL.
   */
  createMigratedDatabase(options?: { durable?: boolean }): Promise<string>;
  /** Ends the server as `kill -9` of its main process does; the others then end by themselves. */
  kill(): Promise<void>;
  /** Starts it again after `kill`; resolves when it answers. */
  start(): Promise<void>;
  /** Process id of the server's main process. */
  pid(): number;
  /** Stops the server and removes its folder. */
  stop(): Promise<void>;
}

/** Makes and starts a server. */
export async function startPostgres(): Promise<TestPostgres> {
  const cacheFolder = defaultCacheFolder(process.env);
  const binaries = await ensurePostgresBinaries(cacheFolder);
  const server = await ClusterServer.make(binaries);
  try {
    await fillCluster(server, cacheFolder, binaries);
    await server.start();
  } catch (error) {
    await server.remove();
    throw error;
  }
  const create = async (template: string | undefined): Promise<string> => {
    const name = `test_${randomBytes(6).toString('hex')}`;
    await server.admin(`create database "${name}"${template === undefined ? '' : ` template "${template}"`}`);
    return server.urlOf(name);
  };
  return {
    createDatabase: async (template) =>
      await create(template === undefined ? undefined : new URL(template).pathname.slice(1)),
    createMigratedDatabase: async ({ durable = false } = {}) =>
      await create(durable ? TEMPLATES.durable : TEMPLATES.migrated),
    kill: () => server.end('SIGKILL'),
    start: () => server.start(),
    pid: () => server.pid(),
    stop: () => server.remove(),
  };
}
