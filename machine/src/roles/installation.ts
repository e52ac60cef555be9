// A whole Berth on this machine: database, host daemon and API of one data folder under one
// supervisor. Owns their order, the lock, the logs and what an earlier supervisor may have left;
// `up` and `demo` are its callers.
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { HeldLock } from '@berth/os/file-lock.ts';
import { readProcess } from '@berth/os/process-identity.ts';
import { Turns } from '@berth/os/turns.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { bootstrap } from './control-plane/api-command.ts';
import type { BootstrapResult } from './control-plane/api-command.ts';
import type { Config } from '../config/config.ts';
import { OperatorFailure } from '../output/failure.ts';
import {
  endRecordedServices,
  instancePaths,
  lockInstance,
  prepareInstance,
  readInstanceRecord,
  writeInstanceRecord,
} from '../supervisor/instance.ts';
import type { InstancePaths, InstanceRecord } from '../supervisor/instance.ts';
import { LogFile } from '@berth/os/log-file.ts';
import { copyOperatorSecrets } from './control-plane/operator-secrets.ts';
import { copyPlansFile } from './control-plane/plans-file.ts';
import { requireFreePort } from '../config/ports.ts';
import type { Progress } from '../output/progress.ts';
import { findServiceUser } from '../supervisor/service-user.ts';
import type { ServiceUser } from '../supervisor/service-user.ts';
import { apiService, apiUrl, previewUrl, publicUrl } from './control-plane/service.ts';
import { databaseService } from './database/service.ts';
import { hostService } from './host/service.ts';
import type { RunningService, Service } from '../supervisor/service.ts';
import { Supervisor } from '../supervisor/supervisor.ts';
import type { SupervisorEvent } from '../supervisor/supervisor.ts';

export interface InstallationOptions {
  /** Folder of the program's files. */
  checkout: string;
  config: Config;
  progress: Progress;
  environment: Readonly<NodeJS.ProcessEnv>;
  /** Something happened to a service. Also in log/supervisor.log. */
  onEvent(event: SupervisorEvent): void;
}

export interface RunningInstallation {
  url: string;
  /** Where people reach it. */
  publicUrl: string;
  /** Below which origin previews are. */
  previewUrl: string;
  paths: InstancePaths;
  user: ServiceUser;
  /** The token is in it at the very first start only. */
  first: BootstrapResult;
  /** Stops API, host daemon and database; VMs go on. Idempotent. */
  stop(): Promise<void>;
}

/** Another supervisor has the data folder. */
export class AlreadyRunning extends OperatorFailure {
  readonly record: InstanceRecord | null;

  constructor(dataFolder: string, record: InstanceRecord | null) {
    super(
      `Berth already runs with ${dataFolder}${record === null ? '' : ` (pid ${record.supervisor.pid}): ${record.url}`}`,
    );
    this.record = record;
  }
}

/** Folder of the program's files: two above this one's. */
export const CHECKOUT = join(import.meta.dirname, '../../..');

/**
 * Starts everything and resolves when the API answers. Throws {@link AlreadyRunning}, or an {@link
 * OperatorFailure} when a port is taken or a service does not come up; nothing runs then. `signal`
 * gives the start up.
 */
export async function startInstallation(
  options: InstallationOptions,
  signal: AbortSignal,
): Promise<RunningInstallation> {
  const { config } = options;
  const paths = instancePaths(config.dataFolder);
  const lock = await lockInstance(paths);
  if (lock === null) throw new AlreadyRunning(config.dataFolder, await readInstanceRecord(paths));

  try {
    await requireFreePort(config.listen, config.port);
    return await startLocked(options, paths, lock, signal);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function startLocked(
  options: InstallationOptions,
  paths: InstancePaths,
  lock: HeldLock,
  signal: AbortSignal,
): Promise<RunningInstallation> {
  const { config, progress } = options;
  await endRecordedServices(await readInstanceRecord(paths));
  const user = await findServiceUser(options.environment);
  await requireReadable(options.checkout, user);
  await prepareInstance(paths, user);
  await copyPlansFile(config.plansFile, paths, user);
  await copyOperatorSecrets(options.environment, paths, user);
  const urls = { url: apiUrl(config), publicUrl: publicUrl(config, options.environment) };
  const record: InstanceRecord = { supervisor: await ownProcess(), ...urls, services: {} };
  await writeInstanceRecord(paths, record);

  const logs = new Map<string, LogFile>();
  const log = (name: string): LogFile => {
    const known = logs.get(name) ?? new LogFile(join(paths.log, `${name}.log`));
    logs.set(name, known);
    return known;
  };
  const recording = new Turns();
  let first: BootstrapResult | null = null;
  const shared = {
    checkout: options.checkout,
    config,
    paths,
    user,
    environment: serviceVariables(options.environment),
  };
  const services = [
    ...(config.databaseUrl === null
      ? [databaseService({ folder: paths.postgres, user, cacheFolder: config.cacheFolder })]
      : []),
    hostService(shared),
    apiService(shared),
  ].map((service) => shown(service, progress));
  const supervisor = new Supervisor({
    services,
    output: (name) => (chunk) => log(name).write(chunk),
    onEvent: (event) => {
      log('supervisor').write(Buffer.from(`${JSON.stringify({ time: new Date().toISOString(), ...event })}\n`));
      if (event.kind === 'started') {
        record.services[event.service] = event.process;
        // Two services may start in the same moment.
        recording
          .take(() => writeInstanceRecord(paths, record))
          .catch((error: Error) => progress.say(`! ${paths.record} could not be written: ${error.message}`));
      }
      options.onEvent(event);
    },
  });
  let stopped: Promise<void> | null = null;
  const stop = (): Promise<void> => {
    stopped ??= (async () => {
      await supervisor.stop();
      logs.forEach((file) => file.close());
      await lock.release();
    })();
    return stopped;
  };
  const giveUp = (): void => void stop();
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    await supervisor.start();
    first = await progress.step('first account and key', () => bootstrap(shared));
  } catch (error) {
    await stop();
    if (signal.aborted || error instanceof OperatorFailure) throw error;

    throw new OperatorFailure((error as Error).message, {
      remedy: `the logs are in ${paths.log}; ./berth doctor checks the machine`,
      cause: error,
    });
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
  return { ...urls, previewUrl: previewUrl(config, options.environment), paths, user, first, stop };
}

/** Shows the first start of a service that takes its time. */
function shown(service: Service, progress: Progress): Service {
  let started = false;
  const start: Service['start'] = async (onOutput, signal): Promise<RunningService> => {
    if (started) return service.start(onOutput, signal);

    const running = await progress.step(`start of the ${service.name}`, () => service.start(onOutput, signal));
    started = true;
    return running;
  };
  return { name: service.name, start };
}

/**
 * The unprivileged user must be able to read the program: a clone made under umask 077 belongs to
 * its maker alone.
 */
async function requireReadable(checkout: string, user: ServiceUser): Promise<void> {
  for (const name of ['api/src/main.ts', 'package.json', 'node_modules/.bin/node']) {
    const path = join(checkout, name);
    if (!existsSync(path)) throw new OperatorFailure(`${path} is missing: this is no complete checkout of Berth`);

    const { mode, uid, gid } = await stat(path);
    const readable = (uid === user.uid ? mode & 0o400 : gid === user.gid ? mode & 0o040 : mode & 0o004) !== 0;
    if (!readable) {
      throw new OperatorFailure(`the user ${user.name}, who runs the API, may not read ${path}`, {
        remedy: `chmod -R go+rX ${checkout} (the folders above it may stay closed)`,
      });
    }
  }
}

async function ownProcess(): Promise<ProcessIdentity> {
  const own = await readProcess(process.pid);
  if (own === null) throw new Error('this process is not in /proc');

  return own;
}

/**
 * What the operator set for the services. The database's address goes to the API alone; flags
 * replace the others.
 */
export function serviceVariables(environment: Readonly<NodeJS.ProcessEnv>): Record<string, string> {
  const kept = Object.entries(environment).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined &&
      (entry[0].startsWith('BERTH_') || entry[0] === 'NODE_EXTRA_CA_CERTS') &&
      ![
        'BERTH_DATABASE_URL',
        'BERTH_CALLER_UID',
        'BERTH_CALLER_HOME',
        'BERTH_HOST_LISTEN',
        'BERTH_PLANS_FILE',
      ].includes(entry[0]),
  );
  return Object.fromEntries(kept);
}
