// The three processes of an installation, started one by one so that a test can kill and restart
// each at a chosen step: the services of `berth up`, without its supervisor.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootstrap } from '@berth/machine/roles/control-plane/api-command.ts';
import { readConfig, type Config } from '@berth/machine/config/config.ts';
import { CHECKOUT } from '@berth/machine/config/folders.ts';
import { instancePaths, prepareInstance, type InstancePaths } from '@berth/machine/supervisor/instance.ts';
import { findServiceUser } from '@berth/machine/supervisor/service-user.ts';
import { prepareSecretKey } from '@berth/machine/roles/control-plane/secret-key.ts';
import { apiService, apiUrl } from '@berth/machine/roles/control-plane/service.ts';
import { databaseService } from '@berth/machine/roles/database/service.ts';
import { hostService } from '@berth/machine/roles/host/service.ts';
import type { RunningService, Service } from '@berth/machine/supervisor/service.ts';
import { freePort } from '../../protocol/test/free-port.ts';
import type { Caller } from './client.ts';
import { leftoversOf, processesOfInstance } from './leftovers.ts';
import { killIfThere } from '../../os/test/signal-if-there.ts';

export const PARTS = ['database', 'host', 'api'] as const;
export type PartName = (typeof PARTS)[number];

/** Never aborted: the test itself ends its parts. */
const NEVER = new AbortController().signal;

export interface PartsOptions {
  /** An empty folder for the data, which the caller removes; default: a temporary one. */
  dataFolder?: string;
  /** Absent: the environment's driver. */
  driver?: 'qemu' | 'fake';
  /** Folder of the sources; default: this checkout. */
  checkout?: string;
  /** BERTH_* variables of host daemon and API. */
  environment?: Readonly<Record<string, string>>;
  /** Called with each piece of a part's log. */
  onLog?: (name: PartName, chunk: Buffer) => void;
}
const LOG_KEPT_CHARACTERS = 200_000;
/**
 * Environment of a test's installation. A single key makes all calls, and a single address all
 * visits; the request limits are tested elsewhere. Tests of warm pools ask for one: an emulated CPU
 * spends seconds on each VM.
 */
export const TEST_ENVIRONMENT = {
  BERTH_REQUESTS_PER_MINUTE: '1000000',
  BERTH_VISITOR_REQUESTS_PER_MINUTE: '1000000',
  BERTH_POOL_MIN: '0',
  BERTH_POOL_MAX: '0',
} as const;

export class Parts {
  readonly caller: Caller;
  readonly dataFolder: string;
  readonly paths: InstancePaths;
  readonly #service: (name: PartName) => Service;
  readonly #running = new Map<PartName, RunningService>();
  readonly #options: PartsOptions;
  #log = '';

  private constructor(
    caller: Caller,
    paths: InstancePaths,
    options: PartsOptions,
    service: (name: PartName) => Service,
  ) {
    this.#options = options;
    this.caller = caller;
    this.dataFolder = paths.root;
    this.paths = paths;
    this.#service = service;
  }

  /** Starts everything on a new data folder with its first account. */
  static async start(options: PartsOptions = {}): Promise<Parts> {
    const dataFolder = options.dataFolder ?? (await mkdtemp(join(tmpdir(), 'berth-parts-')));
    const config: Config = readConfig(
      {
        dataDir: dataFolder,
        port: String(await freePort()),
        ...(options.driver === undefined ? {} : { driver: options.driver }),
      },
      process.env,
    );
    const user = await findServiceUser(process.env);
    const paths = instancePaths(dataFolder);
    await prepareInstance(paths, user);
    await prepareSecretKey(paths, user, {});
    const service = (name: PartName): Service => {
      const armed = { BERTH_CRASH_AT: `@${crashFile(paths, name)}` };
      const environment = { ...TEST_ENVIRONMENT, ...imageEnvironment(), ...options.environment, ...armed };
      const shared = { checkout: options.checkout ?? CHECKOUT, config, paths, user, environment };
      if (name === 'database')
        return databaseService({ folder: paths.postgres, user, cacheFolder: config.cacheFolder });
      return name === 'host' ? hostService(shared) : apiService(shared);
    };
    const caller: Caller = { url: apiUrl(config), token: '', orgId: '', projectId: '' };
    const parts = new Parts(caller, paths, options, service);
    try {
      for (const name of PARTS) await parts.arm(name, null);
      for (const name of PARTS) await parts.run(name);
      const first = await bootstrap({ checkout: CHECKOUT, config, paths, user, environment: {} });
      if (!first.created) throw new Error('a new data folder has an account already');
      Object.assign(caller, { token: first.token, orgId: first.orgId, projectId: first.projectId });
      return parts;
    } catch (error) {
      await parts.stop();
      await parts.remove();
      throw error;
    }
  }

  /** Arms a part, running or not, to kill itself at the crash point; null disarms it. */
  async arm(name: PartName, crashAt: string | null): Promise<void> {
    await writeFile(crashFile(this.paths, name), crashAt ?? '');
  }

  /** Starts a stopped part. Resolves when it is ready. */
  async run(name: PartName, signal: AbortSignal = NEVER): Promise<void> {
    if (this.#running.has(name)) throw new Error(`${name} runs already`);
    const service = this.#service(name);
    const running = await service.start((chunk) => {
      this.#log = (this.#log + chunk.toString()).slice(-LOG_KEPT_CHARACTERS);
      this.#options.onLog?.(name, chunk);
    }, signal);
    this.#running.set(name, running);
    void running.exited.then(() => {
      if (this.#running.get(name) === running) this.#running.delete(name);
    });
  }

  isRunning(name: PartName): boolean {
    return this.#running.has(name);
  }

  /** Resolves with the exit of a part that exits by itself; null when it does not run. */
  async ended(name: PartName): Promise<string | null> {
    return (await this.#running.get(name)?.exited) ?? null;
  }

  /** Stops the part in order and starts it again. */
  async restart(name: PartName): Promise<void> {
    await this.end(name);
    await this.run(name);
  }

  /** Kills the part (`kill -9`); resolves when it is gone. */
  async kill(name: PartName): Promise<void> {
    const running = this.#running.get(name);
    if (running === undefined) return;
    killIfThere(running.process.pid);
    await running.exited;
    await running.stop();
  }

  /** Stops the part in order, so that steps in progress finish. */
  async end(name: PartName): Promise<void> {
    await this.#running.get(name)?.stop();
    this.#running.delete(name);
  }

  /** Starts all stopped parts. */
  async runAll(): Promise<void> {
    for (const name of PARTS) if (!this.isRunning(name)) await this.run(name);
  }

  /** Last log lines of all parts, for a failed test. */
  get log(): string {
    return this.#log;
  }

  /** Stops everything in order. */
  async stop(): Promise<void> {
    for (const name of PARTS.toReversed()) await this.end(name);
  }

  /**
   * Stops everything in order and removes it. Returns the leftovers. A failure may leave VMs:
   * they are killed.
   */
  async close(): Promise<string[]> {
    await this.stop();
    const left = await leftoversOf(this.dataFolder);
    for (const pid of await processesOfInstance(this.dataFolder)) killIfThere(pid);
    await this.remove();
    return left;
  }

  /** Removes the data folder unless the caller owns it. */
  async remove(): Promise<void> {
    if (this.#options.dataFolder !== undefined) return;
    await rm(this.dataFolder, { recursive: true, force: true });
  }
}

/** The API sees the outbox at its own path, and not the data folder. */
const crashFile = (paths: InstancePaths, name: PartName): string =>
  join(name === 'api' ? paths.outbox : paths.root, `crash-at-${name}`);

/**
 * The image that `./berth test` prepared. By default the host daemon takes the newest cached image,
 * which may belong to another checkout.
 */
function imageEnvironment(): Record<string, string> {
  const folder = process.env['BERTH_IMAGE_FOLDER'];
  return folder === undefined || folder === '' ? {} : { BERTH_IMAGE_FOLDER: folder };
}
