// One server of the embedded PostgreSQL on a new folder, reached over a unix socket in
// it. Durability against a loss of power is off (the machine's page cache outlives every process a
// test kills); nothing else differs.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { QUERY_SETTINGS } from '@berth/machine/roles/database/cluster.ts';
import { findServiceUser } from '@berth/machine/supervisor/service-user.ts';
import pg from 'pg';

const START_DEADLINE_MS = 30_000;
const DATABASE_USER = 'berth';

export class ClusterServer {
  /** Where the data goes: there, empty, and owned by the user of the server. */
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
   * Makes a folder below the system's temporary one. @param binaries the folder with `bin`
   * @param settings on top of those of all test servers
   */
  static async make(binaries: string, settings: Readonly<Record<string, string>> = {}): Promise<ClusterServer> {
    const folder = await mkdtemp(join(tmpdir(), 'berth-postgres-'));
    const data = join(folder, 'data');
    await mkdir(data, { mode: 0o700 });
    await chmod(folder, 0o755);
    // initdb refuses root; the user of the services can reach the binaries, also when the cache
    // folder is below a home that is closed to others.
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

  /** Resolves when it answers. */
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
      // After a kill the backends of the old server may hold its shared memory for a moment; the
      // new one then refuses to start.
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

  /** Ends the server and takes its folder away. */
  async remove(): Promise<void> {
    await this.end('SIGINT');
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** @param server the folder of its socket */
export function databaseUrl(server: string, database: string): string {
  return `postgres://${DATABASE_USER}@localhost/${database}?host=${encodeURIComponent(server)}`;
}

/** Runs a statement that concerns the whole server. @param server the folder of its socket */
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

/** Keeps the end of what a child writes to stderr, for the message of a failure. */
function collect(child: ChildProcess): () => string {
  let text = '';
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    text = (text + chunk).slice(-4_000);
  });
  return () => text;
}
