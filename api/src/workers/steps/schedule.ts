// Runs a task periodically, without overlap, until aborted.
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';

interface ScheduledTask {
  name: string;
  /** Time between the end of one run and the start of the next. */
  everyMs: number;
  /** The first run is due after `everyMs`, not at once. */
  waitsFirst?: true;
  run: () => Promise<void>;
}

/**
 * Runs the task until the signal aborts; resolves after the last run. Failures are logged and do
 * not end the schedule.
 */
export async function runEvery(task: ScheduledTask, signal: AbortSignal, log: Logger): Promise<void> {
  let failures = 0;
  for (let isDue = task.waitsFirst !== true; !signal.aborted; isDue = true) {
    try {
      if (isDue) await task.run();
      failures = 0;
    } catch (error) {
      failures += 1;
      // An unreachable database or host fails every run: log only the first failure.
      if (!signal.aborted)
        log[failures === 1 ? 'warn' : 'debug']({ err: error, failures }, `${task.name} failed; it will run again`);
    }
    try {
      await delay(task.everyMs, undefined, { signal });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}
