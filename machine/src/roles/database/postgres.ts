// The embedded PostgreSQL server of one folder: made once, started confined as an unprivileged
// user, stopped in order, adopted when it already runs. Unix socket only. Owns the folder's layout:
// data/ (the cluster), socket/, server.json (which process serves it).
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

/** Crash recovery of a big cluster may take this long; a fresh one starts in some 30 ms. */
const START_DEADLINE_MS = 120_000;
/** A fast shutdown ends sessions and writes a checkpoint. */
const STOP_GRACE_MS = 60_000;
/**
 * sun_path of a unix socket, less the name PostgreSQL gives it (.s.PGSQL.5432) and the closing
 * zero.
 */
const SOCKET_FOLDER_MAX_BYTES = 107 - '/.s.PGSQL.5432'.length;

export interface PostgresOptions {
  /** Absolute path. Made when missing. */
  folder: string;
  /** Who the server runs as, and who may connect beside root. */
  user: ServiceUser;
  /** Where the binaries are kept; by default the machine's cache folder. */
  cacheFolder?: string;
  /** The server's log, as it comes. Not called for an adopted server. */
  onOutput?: (chunk: Buffer) => void;
}

interface RunningPostgres {
  /**
   * Connects root and the server's user, through the socket, to the database `berth` as its owner.
   */
  databaseUrl: string;
  socketFolder: string;
  process: ProcessIdentity;
  /** Another call had started it and it goes on serving that caller too. */
  adopted: boolean;
  /** Resolves with how it ended. Never rejects. */
  readonly exited: Promise<string>;
  /**
   * Ends sessions, writes everything down and resolves when the server is gone. Idempotent. Ends an
   * adopted server too.
   */
  stop(): Promise<void>;
}

/**
 * Starts the PostgreSQL server of a folder and resolves when it answers and has the database
 * `berth`. First use makes the cluster (UTF8, C collation, checksums). It ends with the process
 * that called this. A server that already serves the folder is adopted. Rejects with the server's
 * own last words.
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
    // Children of a server that was killed a moment ago still hold its shared memory; they notice
    // within seconds.
    const heldByOld =
      ended !== null && /pre-existing shared memory block|lock file "postmaster.pid" already exists/.test(tail.text());
    if (!heldByOld || performance.now() > deadline) {
      throw new Error(
        `PostgreSQL did not start (${ended ?? `no answer within ${START_DEADLINE_MS / 1000} s`}):\n${tail.text()}`,
      );
    }

    await delay(100);
  }
}

/**
 * A server that an earlier call started and that answers. One that is just leaving is waited for.
 */
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
        // Looked at only for who asks: the looking keeps this program alive.
        get exited() {
          return processExited(process, new AbortController().signal).then(() => 'ended');
        },
        stop: () => stopAdopted(process),
      };
    }
    if (performance.now() > deadline)
      throw new Error(`the PostgreSQL server of ${folder} (pid ${process.pid}) runs but does not answer`);

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
