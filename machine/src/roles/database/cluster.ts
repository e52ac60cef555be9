// The cluster of the embedded PostgreSQL: its folders, its creation, and the confinement of its
// programs. A cluster is complete or absent.
import { chmod, chown, lstat, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { nullIf } from '@berth/os/errors.ts';
import { startConfined } from '../../supervisor/child.ts';
import type { Confined } from '../../supervisor/confinement.ts';
import { OutputTail } from '@berth/os/output-tail.ts';
import type { ServiceUser } from '../../supervisor/service-user.ts';
import { DATABASE } from './connection.ts';

const INITDB_DEADLINE_MS = 60_000;

export interface Cluster {
  /** Holds `data` and `socket`. */
  folder: string;
  user: ServiceUser;
  binaries: string;
}

/** Makes the folders around the cluster. */
export async function prepareFolders(cluster: Cluster): Promise<void> {
  // Private: the service reaches its folders through binds.
  await mkdir(cluster.folder, { recursive: true, mode: 0o700 });
  const socketFolder = join(cluster.folder, 'socket');
  await mkdir(socketFolder, { recursive: true });
  await chown(socketFolder, cluster.user.uid, cluster.user.gid);
  await chmod(socketFolder, 0o700);
}

/**
 * Makes the cluster in a temporary folder and renames it: an interrupted initdb leaves no partial
 * cluster.
 */
export async function ensureCluster(cluster: Cluster): Promise<void> {
  const data = join(cluster.folder, 'data');
  const owner = await ownerOf(data);
  if (owner !== null) {
    if (owner !== cluster.user.uid) {
      throw new Error(
        `the database in ${data} belongs to uid ${owner}, not to ${cluster.user.name} (uid ${cluster.user.uid}): ` +
          'start Berth as the same user as before',
      );
    }
    return;
  }
  const draft = join(cluster.folder, 'data.draft');
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { mode: 0o700 });
  await chown(draft, cluster.user.uid, cluster.user.gid);
  const tail = new OutputTail();
  const command = [
    '/postgres/bin/initdb',
    '-D',
    '/draft',
    '--username',
    DATABASE,
    '--encoding',
    'UTF8',
    '--locale',
    'C',
    '--data-checksums',
  ] as const;
  const child = await startConfined(
    {
      ...confined(cluster, [...command, '--auth', 'peer', '--no-instructions']),
      binds: [...readBinds(cluster), { from: draft, to: '/draft', writable: true }],
    },
    (chunk) => tail.add(chunk),
  );
  const late = AbortSignal.timeout(INITDB_DEADLINE_MS);
  const stop = (): void => void child.stop('SIGKILL', 0);
  late.addEventListener('abort', stop);
  const reason = await child.exited;
  late.removeEventListener('abort', stop);
  if (reason !== 'exit code 0') throw new Error(`initdb failed (${reason}):\n${tail.text()}`);

  await writeFile(join(draft, 'pg_hba.conf'), 'local all all peer map=berth\n');
  await writeFile(join(draft, 'pg_ident.conf'), `berth root ${DATABASE}\nberth ${cluster.user.name} ${DATABASE}\n`);
  await rename(draft, data);
}

function confined(cluster: Cluster, command: readonly [string, ...string[]]): Confined {
  const folders = [
    { from: join(cluster.folder, 'data'), to: '/data', writable: true },
    { from: join(cluster.folder, 'socket'), to: '/socket', writable: true },
  ];
  const environment = { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin' };
  return { user: cluster.user, binds: [...readBinds(cluster), ...folders], command, environment, workingFolder: '/' };
}

function readBinds(cluster: Cluster): { from: string; to: string }[] {
  return [{ from: cluster.binaries, to: '/postgres' }];
}

/** Planner settings, shared with the servers of tests so that plans agree. */
export const QUERY_SETTINGS = {
  max_connections: '200',
  timezone: 'UTC',
  // Data is on an SSD or in the page cache. The default of 4 assumes a rotating disk and favours
  // sequential scans.
  random_page_cost: '1.1',
} as const;

export function confinedServer(cluster: Cluster): Confined {
  const settings = {
    ...QUERY_SETTINGS,
    listen_addresses: '',
    unix_socket_directories: '/socket',
    unix_socket_permissions: '0700',
    recovery_init_sync_method: 'syncfs',
    log_timezone: 'UTC',
    logging_collector: 'off',
    log_destination: 'stderr',
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  return confined(cluster, ['/postgres/bin/postgres', '-D', '/data', ...flags]);
}

async function ownerOf(path: string): Promise<number | null> {
  return (await lstat(path).catch(nullIf('ENOENT')))?.uid ?? null;
}
