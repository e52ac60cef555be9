// The embedded PostgreSQL server of one folder: created once, started confined as an unprivileged
// user, shut down cleanly, adopted if already running. Unix socket only. Owns the folder's layout:
// data/ (the cluster), socket/, server.json (the serving process).
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { endProcess, isSame, killProcess, processExited } from '@berth/os/process-identity.ts';
import { startConfined } from '../../supervisor/child.ts';
import { defaultCacheFolder } from '../../config/folders.ts';
import { OutputTail } from '@berth/os/output-tail.ts';
import { ensurePostgresBinaries } from './binaries.ts';
import { confinedServer, ensureCluster, prepareFolders } from './cluster.ts';
import type { Cluster } from './cluster.ts';
import { ask, ensureDatabase, socketDatabaseUrl } from './connection.ts';
import { readRecord, writeRecord } from './record.ts';
import type { ServiceUser } from '../../supervisor/service-user.ts';

/** Allows for crash recovery of a big cluster; a new one starts in some 30 ms. */
const START_DEADLINE_MS = 120_000;
/** A fast shutdown disconnects clients and writes a checkpoint. */
const STOP_GRACE_MS = 60_000;
/** Unix socket's sun_path limit, less PostgreSQL's file name (.s.PGSQL.5432) and the final zero. */
const SOCKET_FOLDER_MAX_BYTES = 107 - '/.s.PGSQL.5432'.length;

export interface PostgresOptions {
  /** Absolute path; made if missing. */
  folder: string;
  /** User of the server, who may connect beside root. */
  user: ServiceUser;
  /** Folder of the binaries; default: the system's cache folder. */
  cacheFolder?: string;
  /** Receives the server's log. Not called for an adopted server. */
  onOutput?: (chunk: Buffer) => void;
}

interface RunningPostgres {
  /**
   * Connects root and the server's user through the socket to the database `berth`, as its owner.
   */
  databaseUrl: string;
  socketFolder: string;
  process: ProcessIdentity;
  /** True if another call started the server; it keeps serving that caller too. */
  adopted: boolean;
  /** Resolves with the exit description. Never rejects. */
  readonly exited: Promise<string>;
  /**
   * Disconnects clients, flushes, and resolves when the server is gone. Idempotent. Stops an
   * adopted server too.
   */
  stop(): Promise<void>;
}

/**
 * Starts a folder's PostgreSQL server and resolves when it accepts connections and has the database
 * `berth`. First use creates the cluster (UTF8, C collation, checksums). The server ends with the
 * calling process. Adopts a server that already runs. Rejects with the tail of the server's log.
 */
export async function startPostgres(options: PostgresOptions): Promise<RunningPostgres> {
  const socketFolder = join(options.folder, 'socket');
  if (Buffer.byteLength(socketFolder) > SOCKET_FOLDER_MAX_BYTES) {
    const most = SOCKET_FOLDER_MAX_BYTES - '/socket'.length;
    throw new Error(
      `the path of the database folder is too long for a unix socket: ${options.folder} has more than ${most} bytes`,
    );
  }
  const adopted = await adopt(options.folder, socketFolder);
  if (adopted !== null) return adopted;

  const binaries = await ensurePostgresBinaries(options.cacheFolder ?? defaultCacheFolder(process.env));
  const cluster: Cluster = { folder: options.folder, user: options.user, binaries };
  await prepareFolders(cluster);
  await ensureCluster(cluster);
  return launch(options, cluster, socketFolder);
}

async function launch(options: PostgresOptions, cluster: Cluster, socketFolder: string): Promise<RunningPostgres> {
  const deadline = performance.now() + START_DEADLINE_MS;
  for (;;) {
    const tail = new OutputTail();
    const child = await startConfined(confinedServer(cluster), (chunk) => {
      tail.add(chunk);
      options.onOutput?.(chunk);
    });
    try {
      await writeRecord(options.folder, child.process);
      while (child.endedBy === null && performance.now() < deadline) {
        const answer = await ask(socketFolder);
        if (answer === 'answers') {
          await ensureDatabase(socketFolder);
          const stop = (): Promise<void> => child.stop('SIGINT', STOP_GRACE_MS);
          return {
            databaseUrl: socketDatabaseUrl(socketFolder),
            socketFolder,
            process: child.process,
            adopted: false,
            exited: child.exited,
            stop,
          };
        }
        await Promise.race([delay(5), child.exited]);
      }
    } catch (error) {
      await child.stop('SIGINT', STOP_GRACE_MS);
      throw error;
    }
    const ended = child.endedBy;
    await child.stop('SIGINT', STOP_GRACE_MS);
    // Children of a recently killed server still hold its shared memory; they exit within seconds.
    const heldByOld =
      ended !== null && /pre-existing shared memory block|lock file "postmaster.pid" already exists/.test(tail.text());
    if (!heldByOld || performance.now() > deadline) {
      throw new Error(
        `PostgreSQL did not start (${ended ?? `no response within ${START_DEADLINE_MS / 1000} s`}):\n${tail.text()}`,
      );
    }

    await delay(100);
  }
}

/** Adopts a running server started by an earlier call; waits for one that is shutting down. */
async function adopt(folder: string, socketFolder: string): Promise<RunningPostgres | null> {
  const process = await readRecord(folder);
  if (process === null || !(await isSame(process))) return null;

  const deadline = performance.now() + START_DEADLINE_MS;
  while (await isSame(process)) {
    if ((await ask(socketFolder)) === 'answers') {
      await ensureDatabase(socketFolder);
      return {
        databaseUrl: socketDatabaseUrl(socketFolder),
        socketFolder,
        process,
        adopted: true,
        // Polls only on request: polling keeps this program alive.
        get exited() {
          return processExited(process, new AbortController().signal).then(() => 'ended');
        },
        stop: () => stopAdopted(process),
      };
    }
    if (performance.now() > deadline)
      throw new Error(`the PostgreSQL server of ${folder} (pid ${process.pid}) runs but does not respond`);

    await delay(20);
  }
  return null;
}

async function stopAdopted(process: ProcessIdentity): Promise<void> {
  await killProcess(process, 'SIGINT');
  const grace = AbortSignal.timeout(STOP_GRACE_MS);
  await processExited(process, grace);
  await endProcess(process);
}
