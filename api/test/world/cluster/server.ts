// An embedded PostgreSQL server on a new folder, reached over a unix socket in it. Durability
// against power loss is off (the host's page cache outlives every killed process); nothing else
// differs.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { QUERY_SETTINGS } from '@berth/machine/roles/database/cluster.ts';
import { findServiceUser } from '@berth/machine/supervisor/service-user.ts';
import pg from 'pg';

const START_DEADLINE_MS = 180_000;
const DATABASE_USER = 'berth';

export class ClusterServer {
  /** Data folder: empty, and owned by the server's user. */
  readonly data: string;
  /** Holds the data and the socket. */
  readonly folder: string;
  readonly #settings: Readonly<Record<string, string>>;
  readonly #run: (program: string, args: readonly string[]) => ChildProcess;
  #server: ChildProcess | undefined;
  #log = (): string => '';

  private constructor(
    folder: string,
    settings: Readonly<Record<string, string>>,
    run: (program: string, args: readonly string[]) => ChildProcess,
  ) {
    this.folder = folder;
    this.#settings = settings;
    this.data = join(folder, 'data');
    this.#run = run;
  }

  /**
   * Makes a folder below the system's temporary one. @param binaries the folder with `bin` @param
   * settings in addition to those of all test servers
   */
  static async make(binaries: string, settings: Readonly<Record<string, string>> = {}): Promise<ClusterServer> {
    const folder = await mkdtemp(join(tmpdir(), 'berth-postgres-'));
    const data = join(folder, 'data');
    await mkdir(data, { mode: 0o700 });
    await chmod(folder, 0o755);
    // initdb refuses root. The services' user can reach the binaries even when the cache is below a
    // private home.
    const { uid, gid } = await findServiceUser();
    const identity = process.getuid?.() === 0 ? [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'] : [];
    if (identity.length > 0) await Promise.all([chown(folder, uid, gid), chown(data, uid, gid)]);
    // setpriv also ends the server when this process dies without stopping it.
    return new ClusterServer(folder, settings, (program, args) =>
      spawn('setpriv', [...identity, '--pdeathsig=INT', join(binaries, 'bin', program), ...args], {
        stdio: ['ignore', 'ignore', 'pipe'],
        cwd: folder,
      }),
    );
  }

  async initialise(): Promise<void> {
    const settings = [
      '-U',
      DATABASE_USER,
      '--auth=trust',
      '-E',
      'UTF8',
      '--locale=C',
      '--no-sync',
      '--no-instructions',
    ];
    const made = this.#run('initdb', ['-D', this.data, ...settings]);
    const complaints = collect(made);
    const [exitCode] = (await once(made, 'exit')) as [number | null];
    if (exitCode !== 0) throw new Error(`initdb failed: ${complaints()}`);
  }

  /** Resolves when the server responds. */
  async start(): Promise<void> {
    const settings = {
      ...QUERY_SETTINGS,
      listen_addresses: '',
      unix_socket_directories: this.folder,
      fsync: 'off',
      ...this.#settings,
    };
    const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const deadline = Date.now() + START_DEADLINE_MS;
    for (;;) {
      // After a kill the old backends may briefly hold the shared memory, and a new server then
      // refuses to start.
      if (this.#server === undefined || hasEnded(this.#server)) {
        this.#server = this.#run('postgres', ['-D', this.data, ...flags]);
        this.#log = collect(this.#server);
      }
      try {
        await administer(this.folder, 'select 1');
        return;
      } catch (error) {
        if (Date.now() > deadline) throw new Error(`PostgreSQL did not start: ${this.#log()}`, { cause: error });
        await delay(20);
      }
    }
  }

  async end(signal: 'SIGKILL' | 'SIGINT'): Promise<void> {
    const ending = this.#server;
    if (ending === undefined || hasEnded(ending)) return;
    const exited = once(ending, 'exit');
    ending.kill(signal);
    await exited;
  }

  pid(): number {
    if (this.#server?.pid === undefined || hasEnded(this.#server)) throw new Error('PostgreSQL does not run');
    return this.#server.pid;
  }

  /** Stops the server and removes its folder. */
  async remove(): Promise<void> {
    await this.end('SIGINT');
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** @param server the folder of its socket */
export function databaseUrl(server: string, database: string): string {
  return `postgres://${DATABASE_USER}@localhost/${database}?host=${encodeURIComponent(server)}`;
}

/** Runs a statement on the whole server. @param server the folder of its socket */
export async function administer(server: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl(server, 'postgres') });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** Keeps the tail of a child's stderr, for error messages. */
function collect(child: ChildProcess): () => string {
  let text = '';
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    text = (text + chunk).slice(-4_000);
  });
  return () => text;
}
