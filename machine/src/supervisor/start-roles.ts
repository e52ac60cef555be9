// Runs the services of roles on one data folder under one supervisor. Owns the lock, the logs, the
// record of running services, and the end of an earlier supervisor's leftovers.
import { join } from 'node:path';
import { LogFile } from '@berth/os/log-file.ts';
import { readProcess } from '@berth/os/process-identity.ts';
import { closeInheritedFiles } from '@berth/os/inherited-files.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { SerialQueue } from '@berth/os/serial-queue.ts';
import type { Config } from '../config/config.ts';
import { commandHint } from '../output/command-hint.ts';
import { OperatorFailure } from '../output/failure.ts';
import type { Progress } from '../output/progress.ts';
import {
  endRecordedServices,
  instancePaths,
  lockInstance,
  prepareInstance,
  readInstanceRecord,
  writeInstanceRecord,
} from './instance.ts';
import type { InstanceRecord } from './instance.ts';
import { enterGroups } from './cgroups.ts';
import { protectFromOomKiller } from './oom-protection.ts';
import { findServiceUser } from './service-user.ts';
import type { RunningService, Service } from './service.ts';
import { Supervisor } from './supervisor.ts';
import type { SupervisorEvent } from './supervisor.ts';
import type { Role, RoleContext } from './role.ts';

export interface RolesOptions {
  roles: readonly Role[];
  urls: Pick<InstanceRecord, 'url' | 'publicUrl'>;
  checkout: string;
  config: Config;
  progress: Progress;
  environment: Readonly<NodeJS.ProcessEnv>;
  /** Receives service events, which also go to log/supervisor.log. */
  onEvent(event: SupervisorEvent): void;
}

export interface RunningRoles<T> {
  context: RoleContext;
  result: T;
  /** Stops every service, the last one first; VMs keep running. Idempotent. */
  stop: () => Promise<void>;
}

/** Another supervisor holds the data folder. */
export class AlreadyRunning extends OperatorFailure {
  readonly record: InstanceRecord | null;

  constructor(dataFolder: string, record: InstanceRecord | null) {
    super(
      `Berth already runs with ${dataFolder}${record === null ? '' : ` (pid ${record.supervisor.pid}): ${record.url}`}`,
    );
    this.record = record;
  }
}

/**
 * Starts the services of every role, then runs `afterStart`; resolves when both are done. Throws
 * {@link AlreadyRunning}, or an {@link OperatorFailure} if a service cannot start; nothing runs
 * then. `signal` cancels the start.
 */
export async function startRoles<T>(
  options: RolesOptions,
  afterStart: (context: RoleContext) => Promise<T>,
  signal: AbortSignal,
): Promise<RunningRoles<T>> {
  // Files of the operator's shell or service manager are no business of a service or a QEMU.
  closeInheritedFiles();
  protectFromOomKiller();
  const paths = instancePaths(options.config.dataFolder);
  const lock = await lockInstance(paths);
  if (lock === null) throw new AlreadyRunning(options.config.dataFolder, await readInstanceRecord(paths));

  const groups = enterGroups({
    dataFolder: options.config.dataFolder,
    reserveMib: options.config.memoryReserveMib,
    environment: options.environment,
  });
  if (groups.folder === null) options.progress.say(`! VMs have no limits of the kernel: ${groups.reason}`);
  const release = async (): Promise<void> => {
    if (groups.folder !== null) groups.leave();
    await lock.release();
  };
  try {
    const context = { ...(await prepareRoles(options)), vmCgroup: groups.folder };
    return await supervise(options, context, release, afterStart, signal);
  } catch (error) {
    await release();
    throw error;
  }
}

async function prepareRoles(options: RolesOptions): Promise<RoleContext> {
  const { checkout, config, roles } = options;
  const paths = instancePaths(config.dataFolder);
  await endRecordedServices(await readInstanceRecord(paths));
  const user = await findServiceUser(options.environment);
  const context = { checkout, config, paths, user, environment: serviceVariables(options.environment) };
  for (const role of roles) await role.check(context);
  await prepareInstance(paths, user);
  for (const role of roles) await role.prepare(context, options.environment);
  return context;
}

async function supervise<T>(
  options: RolesOptions,
  context: RoleContext,
  release: () => Promise<void>,
  afterStart: (context: RoleContext) => Promise<T>,
  signal: AbortSignal,
): Promise<RunningRoles<T>> {
  const { progress } = options;
  const { paths } = context;
  const record: InstanceRecord = { supervisor: await ownProcess(), ...options.urls, services: {} };
  await writeInstanceRecord(paths, record);

  const logs = new Map<string, LogFile>();
  const log = (name: string): LogFile => {
    const known = logs.get(name) ?? new LogFile(join(paths.log, `${name}.log`));
    logs.set(name, known);
    return known;
  };
  const recording = new SerialQueue();
  const services = options.roles.flatMap((role) => role.services(context)).map((service) => shown(service, progress));
  const supervisor = new Supervisor({
    services,
    output: (name) => (chunk) => log(name).write(chunk),
    onEvent: (event) => {
      log('supervisor').write(Buffer.from(`${JSON.stringify({ time: new Date().toISOString(), ...event })}\n`));
      if (event.kind === 'started') {
        record.services[event.service] = event.process;
        // Two services may start at the same moment.
        recording
          .run(() => writeInstanceRecord(paths, record))
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
      await release();
    })();
    return stopped;
  };
  const giveUp = (): void => void stop();
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    await supervisor.start();
    // Without its record, a service would outlive a supervisor killed from here on.
    await recording.run(async () => undefined);
    return { context, result: await afterStart(context), stop };
  } catch (error) {
    await stop();
    if (signal.aborted || error instanceof OperatorFailure) throw error;

    throw new OperatorFailure((error as Error).message, {
      remedy: `the logs are in ${paths.log}; ${commandHint('doctor', { dataFolder: paths.root })} checks the machine`,
      cause: error,
    });
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}

/** Shows the progress of a service's first start. */
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

async function ownProcess(): Promise<ProcessIdentity> {
  const own = await readProcess(process.pid);
  if (own === null) throw new Error('this process is not in /proc');

  return own;
}

/**
 * The operator's variables for the services. Only the API gets the database's URL; flags replace
 * the others.
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
        'BERTH_SECRET_KEY_FILE',
        'BERTH_SECRET_KEY_COMMAND',
        'BERTH_SECRET_KEY_STORE_COMMAND',
      ].includes(entry[0]),
  );
  return Object.fromEntries(kept);
}
