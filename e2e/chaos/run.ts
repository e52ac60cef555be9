// Executes a chaos run from its seed: an installation on a small disk, clients, faults, rest,
// comparison. Owns the sequence.
import { setTimeout as delay } from 'node:timers/promises';
import { createProject } from '../world/client.ts';
import { leftoversOf, processesOfInstance } from '../world/leftovers.ts';
import { Parts } from '../world/parts.ts';
import { AgentLife } from './agents/agent-life.ts';
import { agentOperationsOf } from './agents/plan.ts';
import { ChaosClient } from './judging/client.ts';
import { ClientLife } from './sandboxes/client-life.ts';
import { Disturber } from './disturbances/disturber.ts';
import { PartSupervisor } from './disturbances/part-supervisor.ts';
import { LateMessages } from './disturbances/late-message.ts';
import { LateVerbs } from './disturbances/late-verb.ts';
import { DISTURBANCE_KINDS, disturbancesOf, FAKE_KINDS, operationsOf, type DisturbanceKind } from './model/plan.ts';
import { Random } from '../world/random.ts';
import { Report } from './judging/report.ts';
import { compareWhenQuiescent } from './rest.ts';
import { SmallDisk } from './disturbances/small-disk.ts';
import { ServiceLog } from './judging/service-log.ts';
import { FaultLog } from './judging/faults.ts';
import { killIfThere } from '../../os/test/signal-if-there.ts';

interface ChaosOptions {
  seed: string;
  minutes: number;
  /** Ends the run before its minutes are over. Default: never. */
  isEnough?: (report: Report) => boolean;
  clients: number;
  /** Clients of agent sessions. */
  agents: number;
  /** `fake` has everything but VMs: for agent clients only. */
  driver: 'qemu' | 'fake';
  /** Folder of the sources; default: this checkout. */
  checkout?: string;
  /** Mean time between faults. */
  disturbanceMs: number;
  /** Absent: all kinds. */
  disturbances?: readonly DisturbanceKind[];
  say: (line: string) => void;
  /** Ends the run early, in order. */
  signal: AbortSignal;
}

const DISK_MIB = 6 * 1_024;
const PROGRESS_MS = 10_000;
/** No faults while the first sandboxes start. */
const QUIET_MS = 5_000;
const ENOUGH_POLL_MS = 500;

/** Runs and resolves with the report; everything the run made is removed by then. */
export async function runChaos(options: ChaosOptions): Promise<Report> {
  const report = new Report(options.say);
  const faults = new FaultLog();
  const log = new ServiceLog();
  const disk = await SmallDisk.make(DISK_MIB);
  let parts: Parts | null = null;
  try {
    report.say('starting an installation on a disk of its own');
    const environment = {
      BERTH_DISK_OVERCOMMIT: '200',
      BERTH_DISK_RESERVE_GIB: '0.1',
      BERTH_POOL_MIN: options.driver === 'fake' ? '0' : '1',
      BERTH_POOL_MAX: options.driver === 'fake' ? '0' : '3',
      BERTH_SCRIPTED_AGENT: '1',
    };
    parts = await Parts.start({
      dataFolder: disk.folder,
      driver: options.driver,
      ...(options.checkout === undefined ? {} : { checkout: options.checkout }),
      environment: { ...environment, BERTH_LOG_LEVEL: 'info' },
      onLog: (part, chunk) => log.add(part, chunk),
    });
    await disturbedLife(options, { report, faults, disk, parts });
    await parts.stop();
    for (const what of await leftoversOf(disk.folder)) report.found('leaked', `after the end: ${what}`);
    parts = null;
  } finally {
    await parts?.stop();
    // A failure of the run itself may leave VMs behind. The next host daemon to miss their data
    // folder frees their slots.
    for (const pid of await processesOfInstance(disk.folder)) killIfThere(pid);
    await disk.remove();
  }
  const unusual = [...report.findings.map(({ what }) => what), ...report.slowOnes];
  for (const line of log.about(unusual)) options.say(line);
  return report;
}

interface Made {
  report: Report;
  faults: FaultLog;
  disk: SmallDisk;
  parts: Parts;
}

async function disturbedLife(options: ChaosOptions, { report, faults, disk, parts }: Made): Promise<void> {
  const { caller } = parts;
  const external = await createProject(caller, { name: 'external', useCase: 'external' });
  const projects = { persistent: caller.projectId, ephemeral: external.id };
  const quiet = await createProject(caller, { name: 'agents', wakeOnUse: false });
  const random = new Random(options.seed);
  const client = new ChaosClient(caller, faults, report);
  const clients = Array.from(
    { length: options.clients },
    (_, index) => new ClientLife(`c${index + 1}`, client, faults, report, projects),
  );
  const agents = Array.from({ length: options.agents }, (_, index) => {
    const life = new ClientLife(`a${index + 1}`, client, faults, report, { ...projects, persistent: quiet.id });
    return new AgentLife(life, client, report);
  });
  const lives = [...clients, ...agents.map(({ life }) => life)];
  const supervisor = new PartSupervisor(parts, faults, report);
  const targets = (): ClientLife['sandboxes'] =>
    lives.flatMap(({ sandboxes }) => sandboxes.filter((sandbox) => !sandbox.gone));
  const sessions = (): AgentLife['sessions'] => agents.flatMap((agent) => agent.liveSessions);
  const all = (): ClientLife['sandboxes'] => lives.flatMap(({ sandboxes }) => sandboxes);
  const lateVerbs = new LateVerbs({ paths: parts.paths, faults, report, sandboxes: all });
  const lateMessages = new LateMessages({ paths: parts.paths, faults, report, sessions });
  const disturber = new Disturber({
    ...{ supervisor, disk, faults, report, client, lateVerbs, lateMessages, targets, sessions },
  });
  const enough = new AbortController();
  const over = AbortSignal.any([options.signal, enough.signal, AbortSignal.timeout(options.minutes * 60_000)]);
  const looks = setInterval(() => {
    if (options.isEnough?.(report) === true) enough.abort();
  }, ENOUGH_POLL_MS);
  supervisor.start();
  const progress = setInterval(() => report.say(progressLine(report, faults, targets())), PROGRESS_MS);
  try {
    const working = clients.map(async (client) => {
      for (const operation of operationsOf(random.fork(client.name))) {
        if (over.aborted) return;
        await client.run(operation);
        await delay(operation.pauseMs);
      }
    });
    const talking = agents.map(async (agent) => {
      for (const operation of agentOperationsOf(random.fork(agent.life.name))) {
        if (over.aborted) return;
        await agent.run(operation);
        await delay(operation.pauseMs);
      }
    });
    await Promise.all([...working, ...talking, disturb(options, random.fork('disturbances'), disturber, over)]);
    await disturber.calm();
    await faults.cleared(AbortSignal.timeout(120_000));
  } finally {
    clearInterval(progress);
    clearInterval(looks);
    await disturber.calm();
    await supervisor.stop();
  }
  await parts.runAll();
  await compareWhenQuiescent({
    parts,
    clients: lives,
    agents,
    client,
    hasVms: options.driver === 'qemu',
    faults,
    report,
  });
}

async function disturb(options: ChaosOptions, random: Random, disturber: Disturber, over: AbortSignal): Promise<void> {
  await delayUntil(QUIET_MS, over);
  const possible = options.driver === 'fake' ? FAKE_KINDS : DISTURBANCE_KINDS;
  const kinds = possible.filter((kind) => options.disturbances?.includes(kind) ?? true);
  for (const disturbance of disturbancesOf(random, options.disturbanceMs, kinds)) {
    await delayUntil(disturbance.afterMs, over);
    if (over.aborted) return;
    await disturber.run(disturbance);
  }
}

/** Waits for the time, or until aborted. */
async function delayUntil(ms: number, over: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal: over }).catch((error: Error) => {
    if (error.name !== 'AbortError') throw error;
  });
}

function progressLine({ counts, findings }: Report, faults: FaultLog, live: { status: string }[]): string {
  const statuses = new Map<string, number>();
  for (const { status } of live) statuses.set(status, (statuses.get(status) ?? 0) + 1);
  const shown = [...statuses].map(([status, number]) => `${number} ${status}`).join(', ');
  const down = faults.active.map(({ kind }) => kind).join(', ');
  return (
    `${counts.operations} operations, ${counts.kills} kills, ` +
    `${counts.sandboxes} sandboxes (${shown || 'none live'}), ` +
    `${counts.files} files, ${counts.sessions} sessions, ${counts.turns} turns, ` +
    `${findings.length} findings${down === '' ? '' : `; now: ${down}`}`
  );
}
