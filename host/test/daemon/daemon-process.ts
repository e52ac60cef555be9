// Runs the real host daemon as a separate process over its own data folder, for tests that kill it.
// The test itself checks for leftovers on the host.
import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const START_DEADLINE_MS = 240_000;
/** Longer than any timeout of the daemon, so that the daemon reports the slow part. */
const CALL_DEADLINE_MS = 300_000;

interface Answer {
  status: number;
  body: unknown;
}

/** A data folder, and the daemons that use it in sequence. */
export class DaemonFixture {
  readonly root: string;
  readonly token: string;
  readonly #flags: readonly string[];
  /** Variables of the daemons to start. */
  environment: Readonly<Record<string, string>> = {};
  #daemon: ChildProcess | null = null;
  #ended: Promise<[number | null, NodeJS.Signals | null]> | null = null;
  /** Last lines of the daemons' logs. */
  log: string[] = [];

  private constructor(root: string, token: string, flags: readonly string[]) {
    this.root = root;
    this.token = token;
    this.#flags = flags;
  }

  /** @param flags of the daemon, besides its data folder */
  static async make(flags: readonly string[]): Promise<DaemonFixture> {
    const root = await mkdtemp(join(tmpdir(), 'berth-daemon-'));
    const token = randomBytes(32).toString('hex');
    await mkdir(join(root, 'secrets'));
    await writeFile(join(root, 'secrets', 'host-token'), token, { mode: 0o600 });
    return new DaemonFixture(root, token, flags);
  }

  /** Resolves with true when the daemon accepts calls, false when `crashAt` killed it before. */
  async start(options: { crashAt?: string; inheritedFile?: string } = {}): Promise<boolean> {
    const command = [process.execPath, MAIN, '--data-dir', this.root, ...this.#flags];
    const inherit = options.inheritedFile === undefined ? '' : `exec 77< ${options.inheritedFile};`;
    const daemon = spawn('bash', ['-c', `${inherit} exec "$@"`, 'bash', ...command], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...process.env,
        ...this.environment,
        NODE_COMPILE_CACHE: join(this.root, 'compiled'),
        ...(options.crashAt === undefined ? {} : { BERTH_CRASH_AT: options.crashAt }),
      },
    });
    this.#daemon = daemon;
    const ended = once(daemon, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
    this.#ended = ended;
    const ready = Promise.withResolvers<boolean>();
    for (const stream of [daemon.stdout, daemon.stderr]) {
      createInterface(stream).on('line', (line) => {
        this.log.push(line);
        if (line.includes('the host daemon is ready')) ready.resolve(true);
      });
    }
    void ended.then(([code, signal]) => {
      if (signal === 'SIGKILL') ready.resolve(false);
      else ready.reject(new Error(`the daemon ended with ${code ?? signal}: ${this.log.slice(-5).join('\n')}`));
    });
    const timer = setTimeout(
      () => ready.reject(new Error(`the daemon was not ready in time: ${this.log.slice(-5).join('\n')}`)),
      START_DEADLINE_MS,
    );
    try {
      return await ready.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  async call(method: string, path: string, body?: unknown): Promise<Answer> {
    const request = httpRequest({
      socketPath: join(this.root, 'run', 'host.sock'),
      method,
      path,
      headers: { authorization: `Bearer ${this.token}` },
      signal: AbortSignal.timeout(CALL_DEADLINE_MS),
    });
    request.end(body === undefined ? undefined : JSON.stringify(body));
    return new Promise((resolve, reject) => {
      request.once('error', reject);
      request.once('response', (response) => {
        response.toArray().then((chunks) => {
          resolve({ status: response.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks as Buffer[]).toString()) });
        }, reject);
      });
    });
  }

  /** Waits for the daemon's exit; resolves with its exit code or signal. */
  async ended(): Promise<NodeJS.Signals | number | null> {
    const [code, signal] = (await this.#ended) ?? [null, null];
    return signal ?? code;
  }

  async end(signal: NodeJS.Signals): Promise<NodeJS.Signals | number | null> {
    this.#daemon?.kill(signal);
    return this.ended();
  }

  async instanceId(): Promise<string> {
    return (await readFile(join(this.root, 'instance-id'), 'utf8')).trim();
  }

  /** Names of VM folders on disk. */
  async folders(): Promise<string[]> {
    return readdir(join(this.root, 'host', 'vms'));
  }

  /** Stops the daemon and removes the data folder. */
  async remove(): Promise<void> {
    await this.end('SIGKILL');
    await rm(this.root, { recursive: true, force: true });
  }
}
