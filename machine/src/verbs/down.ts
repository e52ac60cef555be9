// `berth down`: stops the supervisor of a data folder from another shell and waits until everything
// but the VMs is gone.
import { writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { isSame, killProcess } from '@berth/os/process-identity.ts';
import { commandHint } from '../output/command-hint.ts';
import { OperatorFailure } from '../output/failure.ts';
import { removeGroups } from '../supervisor/cgroups.ts';
import { endRecordedServices, instancePaths, isSupervised, readInstanceRecord } from '../supervisor/instance.ts';
import type { InstancePaths, InstanceRecord } from '../supervisor/instance.ts';
import { readHostVms, SLEEP_GRACE_MS } from '../roles/host/service.ts';
import type { VerbContext } from './context.ts';

/** Slightly longer than the supervisor's total grace period for its services. */
const STOP_DEADLINE_MS = 150_000;
/** A supervisor that just took the lock has not written its record yet. */
const RECORD_DEADLINE_MS = 5_000;
const STEP_MS = 50;

/**
 * Idempotent: nothing to stop is a success. `sleep` also puts the sandboxes to sleep; the next `up`
 * wakes them.
 */
export async function down(
  { config, progress, signal }: VerbContext,
  { sleep = false }: { sleep?: boolean } = {},
): Promise<number> {
  const paths = instancePaths(config.dataFolder);
  if (!(await isSupervised(paths))) {
    const ended = await endRecordedServices(await readInstanceRecord(paths));
    progress.say(
      ended === 0
        ? `Berth does not run with ${config.dataFolder}.`
        : `Berth was not running; stopped ${ended} leftover services.`,
    );
    return 0;
  }
  const record = await runningRecord(paths, signal);
  const vms = await countVms(paths, signal);
  if (sleep) await writeFile(paths.sleepAtStop, '');
  await progress.step('stopping', async (report) => {
    await killProcess(record.supervisor, 'SIGTERM');
    const stopMs = STOP_DEADLINE_MS + (sleep ? SLEEP_GRACE_MS : 0);
    const deadline = performance.now() + stopMs;
    while (await isSupervised(paths)) {
      if (performance.now() > deadline) {
        throw new OperatorFailure(
          `the supervisor (pid ${record.supervisor.pid}) did not stop within ${stopMs / 1000} s`,
          {
            remedy: `kill -9 ${record.supervisor.pid}, then ${commandHint('down', config)} again; no data is lost`,
          },
        );
      }
      report(`waiting for pid ${record.supervisor.pid}`);
      await delay(STEP_MS, undefined, { signal });
    }
    await endRecordedServices(record);
    removeGroups(config.dataFolder);
  });
  const up = commandHint('up', config);
  progress.say(sleep ? `Stopped. Sandboxes sleep; the next ${up} wakes them.` : `Stopped. ${describeVms(vms, up)}`);
  return 0;
}

/** The record of the running supervisor, which holds the lock. */
async function runningRecord(paths: InstancePaths, signal: AbortSignal): Promise<InstanceRecord> {
  const deadline = performance.now() + RECORD_DEADLINE_MS;
  for (;;) {
    const record = await readInstanceRecord(paths);
    if (record !== null && (await isSame(record.supervisor))) return record;

    if (performance.now() > deadline)
      throw new OperatorFailure(`another program holds ${paths.lock}, but no supervisor of Berth is recorded`);

    await delay(STEP_MS, undefined, { signal });
  }
}

function describeVms(count: number | null, up: string): string {
  if (count === 0) return 'No sandboxes were running.';

  const who = count === null ? 'Sandboxes keep' : count === 1 ? '1 sandbox keeps' : `${count} sandboxes keep`;
  return `${who} running; the next ${up} takes over.`;
}

/**
 * Number of VMs that keep running; null if the host daemon does not respond: it may be restarting,
 * and only wording depends on it.
 */
async function countVms(paths: InstancePaths, signal: AbortSignal): Promise<number | null> {
  const vms = await readHostVms(paths, signal).catch(() => null);
  return vms === null ? null : vms.filter((vm) => vm.status === 'running' || vm.status === 'creating').length;
}
