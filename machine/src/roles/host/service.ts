// The host daemon as a service: root, on a unix socket that the API's user may open. Its VMs
// outlive it.
import { request } from 'node:http';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { hostInfo, vmList } from '@berth/protocol/calls/vms.ts';
import type { HostInfo } from '@berth/protocol/calls/vms.ts';
import type { VmView } from '@berth/protocol/host.ts';
import { secretLines } from '@berth/protocol/secret-lines.ts';
import { readIfPresent } from '@berth/os/durable-file.ts';
import { hasCode } from '@berth/os/errors.ts';
import { startPlain, type RunningChild } from '../../supervisor/child.ts';
import type { InstancePaths } from '../../supervisor/instance.ts';
import { startAndWait } from '../../supervisor/readiness.ts';
import type { Service } from '../../supervisor/service.ts';
import { plainRole, type RoleContext } from '../../supervisor/role.ts';
import { isStopping } from '../../systemd/systemctl.ts';

/** A restarted daemon adopts its VMs and reaps orphans before it responds. */
const ANSWER_DEADLINE_MS = 120_000;
const STOP_GRACE_MS = 30_000;
/** Sleep of every VM: less than TimeoutStopSec of the unit. */
export const SLEEP_GRACE_MS = 600_000;
const CALL_DEADLINE_MS = 5_000;
const ANSWER_MAX_BYTES = 16 * 1024 * 1024;

/** The host daemon and nothing else: needs no database and no API. */
export const HOST = plainRole('host', (context) => [hostService(context)]);

export function hostService(options: RoleContext): Service {
  const { checkout, config, paths, user } = options;
  const flags = Object.entries({
    driver: config.driver,
    'data-dir': config.dataFolder,
    'cache-dir': config.cacheFolder,
    'token-file': paths.hostToken,
    socket: paths.hostSocket,
    'socket-uid': String(user.uid),
    'socket-gid': String(user.gid),
    'guest-cidr': config.guestCidr,
    'cpu-overcommit': String(config.cpuOvercommit),
    'memory-reserve-mib': String(config.memoryReserveMib),
    'vm-cgroup': options.vmCgroup ?? '',
  }).flatMap(([name, value]) => [`--${name}`, value]);
  const environment = { ...options.environment, NODE_COMPILE_CACHE: join(config.cacheFolder, 'node-compile') };
  return {
    name: 'host',
    start: (onOutput, signal) =>
      startAndWait(
        {
          name: 'host',
          launch: (forward) =>
            startPlain(
              {
                command: [process.execPath, join(checkout, 'host/src/main.ts'), ...flags],
                environment,
                workingFolder: '/',
              },
              forward,
            ),
          answers: async (deadline) => (await readHostInfo(paths, deadline)) !== null,
          answerDeadlineMs: ANSWER_DEADLINE_MS,
          stop: (child) => stopDaemon(child, paths),
        },
        onOutput,
        signal,
      ),
  };
}

/** VMs keep running, unless the operator requested otherwise or this computer stops. */
async function stopDaemon(daemon: RunningChild, { sleepAtStop }: InstancePaths): Promise<void> {
  const sleep = (await readIfPresent(sleepAtStop)) !== null || (await isStopping());
  await (sleep ? daemon.stop('SIGUSR2', SLEEP_GRACE_MS) : daemon.stop('SIGTERM', STOP_GRACE_MS));
  await rm(sleepAtStop, { force: true });
}

/** Info of the running host daemon; null if none responds. */
export async function readHostInfo(paths: InstancePaths, signal: AbortSignal): Promise<HostInfo | null> {
  const answer = await callHost(paths, '/host', signal);
  return answer === null ? null : hostInfo.parse(answer);
}

/** VMs recorded by the running host daemon; null if none responds. */
export async function readHostVms(paths: InstancePaths, signal: AbortSignal): Promise<VmView[] | null> {
  const answer = await callHost(paths, '/vms', signal);
  return answer === null ? null : vmList.parse(answer).vms;
}

/** True if the running host daemon accepts the token. */
export async function acceptsHostToken(paths: InstancePaths, token: string): Promise<boolean> {
  return await callHost(paths, '/host', AbortSignal.timeout(CALL_DEADLINE_MS), token).then(
    (info) => info !== null,
    () => false,
  );
}

async function callHost(paths: InstancePaths, path: string, signal: AbortSignal, given?: string): Promise<unknown> {
  const token = given ?? secretLines(await readFile(paths.hostToken, 'utf8'))[0];
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(CALL_DEADLINE_MS)]);
  try {
    return await new Promise((resolve, reject) => {
      const call = request(
        { socketPath: paths.hostSocket, path, headers: { authorization: `Bearer ${token}` }, signal: deadline },
        (response) => {
          let text = '';
          response.setEncoding('utf8');
          response.on('data', (chunk: string) => {
            text += chunk;
            if (text.length > ANSWER_MAX_BYTES) response.destroy(new Error("the host daemon's response is too long"));
          });
          response.once('error', reject);
          response.once('end', () => {
            if (response.statusCode === 200) resolve(JSON.parse(text));
            else
              reject(new Error(`the host daemon returned ${response.statusCode} for ${path}: ${text.slice(0, 500)}`));
          });
        },
      );
      call.once('error', reject);
      call.end();
    });
  } catch (error) {
    // No listener, or the connection broke.
    if (hasCode(error, 'ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'ABORT_ERR')) return null;

    throw error;
  }
}
