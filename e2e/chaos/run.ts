// Executes a chaos run from its seed: an installation on a small disk, clients, faults, rest,
// comparison. Owns the sequence.
import { setTimeout as delay } from 'node:timers/promises';
import { createProject } from '../world/client.ts';
import { leftoversOf, processesOfInstance } from '../world/leftovers.ts';
import { Parts } from '../world/parts.ts';
import { ChaosClient } from './judging/client.ts';
import { ClientLife } from './client-life.ts';
import { Disturber } from './disturbances/disturber.ts';
import { PartSupervisor } from './disturbances/part-supervisor.ts';
import { LateVerbs } from './disturbances/late-verb.ts';
import { disturbancesOf, operationsOf, type DisturbanceKind } from './model/plan.ts';
import { Random } from '../world/random.ts';
import { Report } from './judging/report.ts';
import { compareWhenQuiescent } from './rest.ts';
import { SmallDisk } from './disturbances/small-disk.ts';
import { ServiceLog } from './judging/service-log.ts';
import { FaultLog } from './judging/faults.ts';

interface ChaosOptions {
  seed: string;
  minutes: number;
  clients: number;
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
      BERTH_POOL_MIN: '1',
      BERTH_POOL_MAX: '3',
    };
    parts = await Parts.start({
      dataFolder: disk.folder,
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
    for (const pid of await processesOfInstance(disk.folder)) process.kill(pid, 'SIGKILL');
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
  const random = new Random(options.seed);
  const client = new ChaosClient(caller, faults, report);
  const clients = Array.from(
    { length: options.clients },
    (_, index) => new ClientLife(`c${index + 1}`, client, faults, report, projects),
  );
  const supervisor = new PartSupervisor(parts, faults, report);
  const targets = (): ClientLife['sandboxes'] =>
    clients.flatMap(({ sandboxes }) => sandboxes.filter((sandbox) => !sandbox.gone));
  const all = (): ClientLife['sandboxes'] => clients.flatMap(({ sandboxes }) => sandboxes);
  const lateVerbs = new LateVerbs({ paths: parts.paths, faults, report, sandboxes: all });
  const disturber = new Disturber({ supervisor, disk, faults, report, client, lateVerbs, targets });
  const over = AbortSignal.any([options.signal, AbortSignal.timeout(options.minutes * 60_000)]);
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
    await Promise.all([...working, disturb(options, random.fork('disturbances'), disturber, over)]);
    await disturber.calm();
    await faults.cleared(AbortSignal.timeout(120_000));
  } finally {
    clearInterval(progress);
    await disturber.calm();
    await supervisor.stop();
  }
  await parts.runAll();
  await compareWhenQuiescent({ parts, clients, faults, report });
}

async function disturb(options: ChaosOptions, random: Random, disturber: Disturber, over: AbortSignal): Promise<void> {
  await delayUntil(QUIET_MS, over);
  for (const disturbance of disturbancesOf(random, options.disturbanceMs, options.disturbances)) {
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
    `${counts.files} files, ${findings.length} findings${down === '' ? '' : `; now: ${down}`}`
  );
}
