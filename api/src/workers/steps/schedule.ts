// Runs a small task again and again, never beside itself, until told to stop. Owns the timing only.
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';

interface ScheduledTask {
  name: string;
  /** Time between the end of one run and the start of the next. */
  everyMs: number;
  run: () => Promise<void>;
}

/**
 * Runs the task until the signal aborts; resolves when its last run has ended. A run that fails is
 * logged and does not end the schedule.
 */
export async function runEvery(task: ScheduledTask, signal: AbortSignal, log: Logger): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      await task.run();
      failures = 0;
    } catch (error) {
      failures += 1;
      // The database or a host being away fails every run; one line when it begins is enough.
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
