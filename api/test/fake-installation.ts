// Installation for tests without VMs: PostgreSQL, the control plane and the host daemon with its
// fake driver. Each is a process that a test can kill and restart. Real guest daemons run real
// commands. Keeps all logs.
import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { execResult, type ExecResult } from '@berth/contract/commands/exec.ts';
import { sandbox as sandboxSchema, type Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import { startPostgres, type TestPostgres } from './world/database.ts';

const run = promisify(execFile);
const PROGRAMS = {
  api: fileURLToPath(new URL('../src/main.ts', import.meta.url)),
  host: fileURLToPath(new URL('../../host/src/main.ts', import.meta.url)),
} as const;
const READY = { api: 'ready', host: 'the host daemon is ready' } as const;
const SETTLE_DEADLINE_MS = 60_000;
const POLL_INTERVAL_MS = 20;

type Part = keyof typeof PROGRAMS;

export class FakeInstallation {
  readonly postgres: TestPostgres;
  /** Contains all files of the host daemon and its VMs. */
  readonly folder: string;
  readonly databaseUrl: string;
  readonly #environment: Record<string, string>;
  readonly #parts = new Map<Part, ChildProcess>();
  #url = '';
  #key = { token: '', orgId: '', projectId: '' };
  /** Output of the processes so far. */
  log = '';

  private constructor(
    postgres: TestPostgres,
    folder: string,
    databaseUrl: string,
    environment: Record<string, string>,
  ) {
    this.postgres = postgres;
    this.folder = folder;
    this.databaseUrl = databaseUrl;
    this.#environment = environment;
  }

  /** @param more variables of both processes @param postgres by default the server of all files */
  static async start(
    more: Readonly<Record<string, string>>,
    postgres: TestPostgres | null = null,
  ): Promise<FakeInstallation> {
    postgres ??= await startPostgres();
    const folder = await mkdtemp(join(tmpdir(), 'berth-fake-installation-'));
    for (const name of ['host-token', 'secret-key'])
      await writeFile(join(folder, name), randomBytes(32).toString('base64'), { mode: 0o600 });

    const databaseUrl = await postgres.createDatabase();
    const installation = new FakeInstallation(postgres, folder, databaseUrl, {
      PATH: process.env['PATH'] ?? '',
      BERTH_DATABASE_URL: databaseUrl,
      BERTH_DRIVER: 'fake',
      BERTH_DATA_DIR: join(folder, 'data'),
      BERTH_CACHE_DIR: join(folder, 'cache'),
      BERTH_HOST_SOCKET: join(folder, 'host.sock'),
      BERTH_HOST_URL: `unix:${join(folder, 'host.sock')}`,
      BERTH_HOST_TOKEN_FILE: join(folder, 'host-token'),
      BERTH_SECRET_KEY_FILE: join(folder, 'secret-key'),
      BERTH_OUTBOX_FOLDER: join(folder, 'outbox'),
      BERTH_PORT: '0',
      BERTH_POOL_MAX: '0',
      BERTH_DISK_RESERVE_GIB: '0',
      BERTH_DISK_OVERCOMMIT: '1000',
      BERTH_LOG_LEVEL: 'debug',
      ...more,
    });
    try {
      await installation.run('host');
      const { stdout } = await run(process.execPath, [PROGRAMS.api, 'bootstrap'], { env: installation.#environment });
      installation.#key = JSON.parse(stdout) as { token: string; orgId: string; projectId: string };
      await installation.run('api');
      return installation;
    } catch (error) {
      await installation.stop();
      throw error;
    }
  }

  get url(): string {
    return this.#url;
  }

  get orgId(): string {
    return this.#key.orgId;
  }

  /** The owner's API key. */
  get token(): string {
    return this.#key.token;
  }

  /** Starts a stopped part; resolves when it accepts calls. */
  async run(part: Part): Promise<void> {
    const child = spawn(process.execPath, [PROGRAMS[part]], {
      env: this.#environment,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#parts.set(part, child);
    const ready = Promise.withResolvers<Record<string, unknown>>();
    child.once('exit', (code, signal) =>
      ready.reject(new Error(`${part} ended with ${code ?? signal}: ${this.log.slice(-2_000)}`)),
    );
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        this.log += `${line}\n`;
        if (line.includes(`"msg":"${READY[part]}"`)) ready.resolve(JSON.parse(line) as Record<string, unknown>);
      });
    }
    const line = await ready.promise;
    if (part === 'api') this.#url = `http://127.0.0.1:${String(line['port'])}`;
  }

  /** Ends a part, by default as `kill -9` does. */
  async end(part: Part, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#parts.get(part);
    this.#parts.delete(part);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }

  /** Destroys every sandbox, stops all processes and removes the folder. */
  async stop(): Promise<void> {
    if (this.#parts.has('api')) {
      const { sandboxes } = await this.call('GET', `/v1/orgs/${this.orgId}/sandboxes`);
      for (const { id } of sandboxes as Sandbox[]) {
        await this.call('POST', `/v1/sandboxes/${id}/destroy`);
        await this.until(id, ({ status }) => status === 'deleted');
      }
    }
    await this.end('api', 'SIGTERM');
    await this.end('host', 'SIGTERM');
    await this.postgres.stop();
    await rm(this.folder, { recursive: true, force: true, maxRetries: 10 });
  }

  /** Returns the body of a successful response; throws otherwise. */
  async call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
    const response = await fetch(this.#url + path, {
      method,
      headers: {
        authorization: `Bearer ${this.#key.token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as Record<string, unknown>;
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
    return answer;
  }

  async makeProject(fields: object): Promise<string> {
    const { project } = await this.call('POST', `/v1/orgs/${this.orgId}/projects`, fields);
    return (project as { id: string }).id;
  }

  async create(fields: object): Promise<Sandbox> {
    const { sandbox } = await this.call('POST', `/v1/orgs/${this.orgId}/sandboxes`, { agent: 'agent_one', ...fields });
    return sandboxSchema.parse(sandbox);
  }

  async get(id: string): Promise<Sandbox> {
    return sandboxSchema.parse((await this.call('GET', `/v1/sandboxes/${id}`))['sandbox']);
  }

  /** Returns the sandbox once `done` is true for it. */
  async until(id: string, done: (sandbox: Sandbox) => boolean): Promise<Sandbox> {
    const deadline = Date.now() + SETTLE_DEADLINE_MS;
    for (;;) {
      const sandbox = await this.get(id);
      if (done(sandbox)) return sandbox;
      assert.ok(Date.now() < deadline, `still ${JSON.stringify(sandbox)} after ${SETTLE_DEADLINE_MS} ms`);
      await delay(POLL_INTERVAL_MS);
    }
  }

  async exec(id: string, command: string): Promise<ExecResult> {
    return execResult.parse(await this.call('POST', `/v1/sandboxes/${id}/exec`, { command }));
  }

  async kindsOf(id: string): Promise<string[]> {
    const { activity } = await this.call('GET', `/v1/orgs/${this.orgId}/activity?sandboxId=${id}&limit=100`);
    return (activity as { kind: string }[]).map(({ kind }) => kind).toReversed();
  }
}
