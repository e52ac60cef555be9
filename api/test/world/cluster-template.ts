// The data that the PostgreSQL of each test file begins as a copy of: initialised, with a database
// that has the tables, and one that also has those of the durable work. Made once for the
// migrations as they are, and kept in the cache folder; several test processes at once are safe.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { glob, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { pino } from 'pino';
import { migrate } from '../../src/store/database/migrate.ts';
import { migrateDurable } from '../../src/workers/durable.ts';
import { ClusterServer } from './cluster-server.ts';

const run = promisify(execFile);
const API = join(import.meta.dirname, '../..');
/**
 * What decides how its databases look: our migrations, and the library that makes tables of its
 * own.
 */
const SOURCES = [
  'migrations/*.ts',
  'src/store/database/migrate.ts',
  'src/workers/durable.ts',
  'package.json',
  'test/world/cluster-*.ts',
];

/** Databases to be copied: with the tables; also with those of the durable work. */
export const TEMPLATES = { migrated: 'template_migrated', durable: 'template_durable' } as const;

/**
 * Fills the data folder of a server that does not run yet. @param binaries those of the server;
 * their folder's name has the version
 */
export async function fillCluster(server: ClusterServer, cacheFolder: string, binaries: string): Promise<void> {
  await copy(`${await findTemplate(cacheFolder, binaries)}/.`, server.data);
}

async function findTemplate(cacheFolder: string, binaries: string): Promise<string> {
  const folder = join(cacheFolder, 'postgres-tests');
  const target = join(folder, `${basename(binaries)}-${await digestOfSources()}`);
  if (existsSync(target)) return target;
  await mkdir(folder, { recursive: true, mode: 0o755 });
  const draft = `${target}.draft-${process.pid}`;
  // Made where the user of the server gets to, which the cache folder need not be.
  const server = await ClusterServer.make(binaries);
  try {
    await server.initialise();
    await server.start();
    await server.admin(`create database ${TEMPLATES.migrated}`);
    await migrate(server.urlOf(TEMPLATES.migrated));
    await server.admin(`create database ${TEMPLATES.durable} template ${TEMPLATES.migrated}`);
    await migrateDurable(server.urlOf(TEMPLATES.durable), pino({ level: 'silent' }));
    await server.end('SIGINT');
    await copy(server.data, draft);
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    // Another process was quicker.
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
