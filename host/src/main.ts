// The host daemon: wires its parts, recovers the state of an earlier daemon, serves, and leaves its
// VMs running on SIGTERM or SIGINT. SIGUSR2 puts them to sleep, before this computer stops. Start
// one for development (the fake driver runs the guest daemon as a local process and isolates
// nothing):
//   mkdir -p /tmp/berth/secrets
//   (umask 077; head -c 32 /dev/urandom | base64 -w0 | tr -d '+/=' > /tmp/berth/secrets/host-token)
//   node_modules/.bin/node host/src/main.ts --driver fake --data-dir /tmp/berth --listen 127.0.0.1:4801
// Without --listen it serves on the unix socket DATA/run/host.sock. The log line "the host daemon
// is ready", with its url, means that it accepts calls.
import { mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { resizeVm, sleepVm, wakeVm } from '@berth/protocol/calls/vms.ts';
import { closeInheritedFiles } from '@berth/os/inherited-files.ts';
import { pino, type Logger } from 'pino';
import { readHost } from './vm/admission.ts';
import { readConfig, type HostConfig } from './config.ts';
import { openDataFolder, randomLetters, readTokens, type DataFolder } from './vm/directory/data-folder.ts';
import { boundedMessageOf } from './vm/host-error.ts';
import { makePool } from './make-pool.ts';
import { hostCalls } from './server/calls.ts';
import { HostTokens } from './server/host-tokens.ts';
import { HostServer } from './server/server.ts';
import { armCrashPoint } from './vm/crash-point.ts';
import { DataKeys } from './vm/directory/data-keys.ts';
import { FenceDirectory } from './vm/directory/fence.ts';
import { VmDirectory } from './vm/directory/record.ts';
import { AgentBridge } from './guest/agent-bridge.ts';
import { guestsBehind } from './gateway/client.ts';
import { answerBehind } from './gateway/dns.ts';
import { GatewayProcess } from './gateway/launch.ts';
import { DIRECT_GUESTS } from './guest/client.ts';
import { GuestStreams } from './guest/guest-streams.ts';
import { ModelGateway } from './model-gateway/client.ts';
import { FAKE_GATEWAY_UID, FAKE_MODEL_GATEWAY_UID, GATEWAY_UID, MODEL_GATEWAY_UID } from './network/slots/slot.ts';
import { newQuestions } from './network/dns/questions.ts';
import { VmLifecycle } from './vm/lifecycle/lifecycle.ts';
import { sleepAll } from './vm/lifecycle/sleep-all.ts';
import { makeDriver } from './make-driver.ts';

/** Grace period of in-flight calls at shutdown. */
const STOP_TIMEOUT_MS = 10_000;
/** Deadlines of the verbs; `adoptMs` bounds the first call of an adopted guest. */
const DEADLINES = {
  sleepMs: sleepVm.deadlineMs,
  wakeMs: wakeVm.deadlineMs,
  resizeMs: resizeVm.deadlineMs,
  adoptMs: 10_000,
};

async function run(config: HostConfig, log: Logger): Promise<void> {
  const stop = stopSignal(log);
  const data = await openDataFolder(config.dataFolder);
  await serveUntil(stop, config, data, log);
  await data.unlock();
}

async function serveUntil(
  stop: Promise<NodeJS.Signals>,
  config: HostConfig,
  data: DataFolder,
  log: Logger,
): Promise<void> {
  const startedMs = performance.now();
  const readAll = (): Promise<readonly string[]> => readTokens(config.tokenFile);
  const tokens = new HostTokens(await readAll());
  const gateway = config.gateway
    ? new GatewayProcess({
        folder: join(config.dataFolder, 'run', 'gateway'),
        uid: config.driver === 'qemu' ? GATEWAY_UID : FAKE_GATEWAY_UID,
        log,
      })
    : null;
  await gateway?.start();
  const guests = gateway === null ? DIRECT_GUESTS : guestsBehind(gateway);
  const answer = gateway === null ? newQuestions() : answerBehind(gateway);
  const { driver, qemuVersion, templateId, cpuModels, largest } = await makeDriver(
    config,
    data,
    { guests, answer },
    log,
  );
  const models = new ModelGateway({
    folder: join(config.dataFolder, 'run', 'model-gateway'),
    uid: config.driver === 'qemu' ? MODEL_GATEWAY_UID : FAKE_MODEL_GATEWAY_UID,
    // The fake driver's places are above.
    lowPorts: config.driver === 'qemu',
    ca: config.modelCaFile === null ? null : await readFile(config.modelCaFile, 'utf8'),
    log,
  });
  const directory = new VmDirectory(data.vms, await DataKeys.open(data.instanceId));
  const fences = new FenceDirectory(data.fences);
  await directory.open();
  for (const name of await fences.open()) log.error({ name }, 'removed an invalid fence');

  const pool = makePool(config, data, driver, guests, log, () => lifecycle.capacity());
  const lifecycle: VmLifecycle = new VmLifecycle(
    {
      driver,
      directory,
      fences,
      log,
      encryptDisks: config.encryptDisks,
      pool,
      streams: new GuestStreams(config.streams),
      guests,
      models,
      deadlines: { ...DEADLINES, createMs: config.createDeadlineMs },
    },
    {
      policy: config.policy,
      largest,
      readHost: (vmIds) =>
        pool.withPoolMemory(
          readHost(
            config.dataFolder,
            vmIds.map((id) => join(data.vms, id)),
          ),
        ),
    },
  );
  await lifecycle.recover();
  await pool.clear();

  const host = {
    hostId: data.hostId,
    startId: `run_${randomLetters(24)}`,
    driver: driver.name,
    accelerator: driver.accelerator,
    qemuVersion,
    templateId,
    cpuModels: [...cpuModels],
    createDeadlineMs: config.createDeadlineMs,
  };
  const server = new HostServer({
    calls: hostCalls({ lifecycle, pool, host, agents: new AgentBridge(config.agents) }),
    streamBounds: config.streams,
    tokens,
    log,
  });
  if ('socket' in config.listenOn) await mkdir(dirname(config.listenOn.socket), { recursive: true, mode: 0o711 });

  const url = await server.listen(config.listenOn);
  log.info(
    { ...host, url, vms: lifecycle.list().length, tookMs: Math.round(performance.now() - startedMs) },
    'the host daemon is ready',
  );
  pool.start();

  const stopping = new AbortController();
  const loops = [tokens.follow(readAll, stopping.signal, log), lifecycle.sampler.run(stopping.signal)];
  const sleeps = (await stop) === 'SIGUSR2';
  stopping.abort();
  await Promise.all(loops);
  const patience = AbortSignal.timeout(STOP_TIMEOUT_MS);
  const closing = [server.close(patience), pool.close()];
  if (sleeps) await sleepAll(lifecycle, log);
  await Promise.all([...closing, lifecycle.close(patience)]);
  await models.close();
  await driver.close();
  await gateway?.close();
  log.info(`the host daemon is stopping; its VMs ${sleeps ? 'sleep' : 'keep running'}`);
}

/**
 * Resolves at the first SIGTERM, SIGINT or SIGUSR2. Listens from the start: a stop during recovery
 * must not leave a half-adopted VM.
 */
function stopSignal(log: Logger): Promise<NodeJS.Signals> {
  const stop = Promise.withResolvers<NodeJS.Signals>();
  for (const name of ['SIGTERM', 'SIGINT', 'SIGUSR2'] as const) {
    process.on(name, () => {
      log.info({ signal: name }, 'stop requested');
      stop.resolve(name);
    });
  }
  return stop.promise;
}

// Fixed umask: file modes must not depend on the caller's.
process.umask(0o022);
closeInheritedFiles();
try {
  const config = readConfig(process.argv.slice(2), process.env);
  if (config.crashAt !== null) armCrashPoint(config.crashAt);

  const log = pino({ level: config.logLevel, base: { part: 'host' } });
  process.on('uncaughtException', (error) => {
    log.fatal({ err: error }, 'an internal error ended the host daemon; the next one takes over its VMs');
    process.exit(70);
  });
  await run(config, log);
} catch (error) {
  process.stderr.write(`berth host: ${boundedMessageOf(error)}\n`);
  // Watches of adopted VMs would keep the process alive. The next daemon takes over the VMs and the
  // data folder's lock.
  process.exit(1);
}
