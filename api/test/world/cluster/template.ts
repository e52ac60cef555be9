// Template of the data of test PostgreSQL servers: initialised, with a migrated database. Made once
// for the current migrations and kept in the cache folder; safe for concurrent test processes.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { glob, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { defaultCacheFolder } from '@berth/machine/config/folders.ts';
import { ensurePostgresBinaries } from '@berth/machine/roles/database/binaries.ts';
import { migrate } from '../../../src/store/database/migrate.ts';
import { administer, ClusterServer, databaseUrl } from './server.ts';

const run = promisify(execFile);
const API = join(import.meta.dirname, '../../..');
/** Sources that determine the database schema. */
const SOURCES = ['migrations/*.ts', 'src/store/database/migrate.ts', 'test/world/cluster-*.ts'];

/** Name of the database to copy. */
export const TEMPLATE = 'template_migrated';

/**
 * Starts a server on a copy of the data. @param settings in addition to those of all test servers
 */
export async function startCluster(settings: Readonly<Record<string, string>> = {}): Promise<ClusterServer> {
  const cacheFolder = defaultCacheFolder(process.env);
  const binaries = await ensurePostgresBinaries(cacheFolder);
  const server = await ClusterServer.make(binaries, settings);
  try {
    await copy(`${await findTemplate(cacheFolder, binaries)}/.`, server.data);
    await server.start();
    return server;
  } catch (error) {
    await server.remove();
    throw error;
  }
}

async function findTemplate(cacheFolder: string, binaries: string): Promise<string> {
  const folder = join(cacheFolder, 'postgres-tests');
  const target = join(folder, `${basename(binaries)}-${await digestOfSources()}`);
  if (existsSync(target)) return target;
  await mkdir(folder, { recursive: true, mode: 0o755 });
  const draft = `${target}.draft-${process.pid}`;
  // Made where the server's user has access, unlike the cache folder.
  const server = await ClusterServer.make(binaries);
  try {
    await server.initialise();
    await server.start();
    const { folder: socket } = server;
    await administer(socket, `create database ${TEMPLATE}`);
    await migrate(databaseUrl(socket, TEMPLATE));
    await server.end('SIGINT');
    await copy(server.data, draft);
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    // Another process was faster.
    if (!existsSync(target)) throw error;
  } finally {
    await server.remove();
  }
  return target;
}

/** With owners and modes. */
async function copy(from: string, to: string): Promise<void> {
  await run('cp', ['-a', '--reflink=auto', from, to]);
}

async function digestOfSources(): Promise<string> {
  const hash = createHash('sha256');
  const files: string[] = [];
  for await (const file of glob(SOURCES, { cwd: API })) files.push(file);
  for (const file of files.sort()) {
    hash.update(`${file}\0`);
    hash.update(await readFile(join(API, file)));
  }
  return hash.digest('hex').slice(0, 24);
}
