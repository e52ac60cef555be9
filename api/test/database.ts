// A real PostgreSQL for tests: the embedded binaries, a data folder of its own below the system's temporary folder, a unix socket only.
// Durability against a loss of power is off (the machine's page cache outlives every process a test kills); nothing else differs.
import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmod, chown, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { defaultCacheFolder } from '@berth/machine/folders.ts';
import { ensurePostgresBinaries } from '@berth/machine/postgres/binaries.ts';
import { findServiceUser } from '@berth/machine/service-user.ts';
import pg from 'pg';

const START_DEADLINE_MS = 30_000;
const DATABASE_USER = 'berth';

export interface TestPostgres {
  /** Makes an empty database, or a copy of `template` (which nobody may be connected to), and returns its URL. */
  createDatabase(template?: string): Promise<string>;
  /** Ends the server as `kill -9` of its main process does; the others then end by themselves. */
  kill(): Promise<void>;
  /** Starts it again after `kill`; resolves when it answers. */
  start(): Promise<void>;
  /** Process id of the server's main process. */
  pid(): number;
  /** Stops the server and removes its folder. */
  stop(): Promise<void>;
}

/** Makes and starts a server. Takes about a second. */
export async function startPostgres(): Promise<TestPostgres> {
  const binaries = await ensurePostgresBinaries(defaultCacheFolder(process.env));
  const folder = await mkdtemp(join(tmpdir(), 'berth-postgres-'));
  const data = join(folder, 'data');
  await mkdir(data, { mode: 0o700 });
  await chmod(folder, 0o755);
  // initdb refuses root; the user of the services can reach the binaries, also when the cache folder is below a home that is closed to others.
  const { uid, gid } = await findServiceUser();
  const identity = process.getuid?.() === 0 ? [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'] : [];
  if (identity.length > 0) await Promise.all([chown(folder, uid, gid), chown(data, uid, gid)]);
  // setpriv also ends the server when this process dies without stopping it.
  const run = (program: string, args: string[]): ChildProcess =>
    spawn('setpriv', [...identity, '--pdeathsig=INT', join(binaries, 'bin', program), ...args], {
      stdio: ['ignore', 'ignore', 'pipe'],
      cwd: folder,
    });

  const made = run('initdb', [
    '-D',
    data,
    '-U',
    DATABASE_USER,
    '--auth=trust',
    '-E',
    'UTF8',
    '--locale=C',
    '--no-sync',
    '--no-instructions',
  ]);
  const complaints = collect(made);
  const [exitCode] = (await once(made, 'exit')) as [number | null];
  if (exitCode !== 0) throw new Error(`initdb failed: ${complaints()}`);

  const urlOf = (database: string): string => `postgres://${DATABASE_USER}@localhost/${database}?host=${encodeURIComponent(folder)}`;
  let server: ChildProcess | undefined;
  let serverLog = (): string => '';

  const admin = async (statement: string): Promise<void> => {
    const client = new pg.Client({ connectionString: urlOf('postgres') });
    await client.connect();
    try {
      await client.query(statement);
    } finally {
      await client.end();
    }
  };

  const start = async (): Promise<void> => {
    const settings = ['listen_addresses=', `unix_socket_directories=${folder}`, 'fsync=off', 'max_connections=200', 'timezone=UTC'];
    const deadline = Date.now() + START_DEADLINE_MS;
    for (;;) {
      // After `kill` the backends of the old server may hold its shared memory for a moment; the new one then refuses to start.
      if (server === undefined || hasEnded(server)) {
        server = run('postgres', ['-D', data, ...settings.flatMap((setting) => ['-c', setting])]);
        serverLog = collect(server);
      }
      try {
        await admin('select 1');
        return;
      } catch (error) {
        if (Date.now() > deadline) throw new Error(`PostgreSQL did not start: ${serverLog()}`, { cause: error });
        await delay(20);
      }
    }
  };

  const end = async (signal: 'SIGKILL' | 'SIGINT'): Promise<void> => {
    const ending = server;
    if (ending === undefined || hasEnded(ending)) return;
    const exited = once(ending, 'exit');
    ending.kill(signal);
    await exited;
  };

  await start();
  return {
    createDatabase: async (template) => {
      const name = `test_${randomBytes(6).toString('hex')}`;
      const source = template === undefined ? '' : ` template "${new URL(template).pathname.slice(1)}"`;
      await admin(`create database "${name}"${source}`);
      return urlOf(name);
    },
    kill: () => end('SIGKILL'),
    start,
    pid: () => {
      if (server?.pid === undefined || hasEnded(server)) throw new Error('PostgreSQL does not run');
      return server.pid;
    },
    stop: async () => {
      await end('SIGINT');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** Keeps the end of what a child writes to stderr, for the message of a failure. */
function collect(child: ChildProcess): () => string {
  let text = '';
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    text = (text + chunk).slice(-4_000);
  });
  return () => text;
}
