// Starts a service and waits until it responds.
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '@berth/os/errors.ts';
import type { RunningChild } from './child.ts';
import { OutputTail } from '@berth/os/output-tail.ts';
import type { RunningService } from './service.ts';

const PROBE_STEP_MS = 25;

interface Startable {
  name: string;
  launch(onOutput: (chunk: Buffer) => void): Promise<RunningChild>;
  /** True once it responds. */
  answers(signal: AbortSignal): Promise<boolean>;
  answerDeadlineMs: number;
  stop(child: RunningChild): Promise<void>;
}

/** A stop by SIGTERM, and by SIGKILL after the grace period. */
export const stopWithin =
  (graceMs: number): Startable['stop'] =>
  (child) =>
    child.stop('SIGTERM', graceMs);

/**
 * Starts a service and waits until it responds. On failure ends it and rejects with the tail of its
 * log.
 */
export async function startAndWait(
  startable: Startable,
  onOutput: (chunk: Buffer) => void,
  signal: AbortSignal,
): Promise<RunningService> {
  const tail = new OutputTail();
  const notStarted = (reason: string, cause?: unknown): Error =>
    new Error(`${startable.name} did not start (${reason})${tail.text() === '' ? '' : `:\n${tail.text()}`}`, { cause });
  const launching = startable.launch((chunk) => {
    tail.add(chunk);
    onOutput(chunk);
  });
  const child = await launching.catch((error: unknown) => {
    throw notStarted(messageOf(error), error);
  });
  const stop = (): Promise<void> => startable.stop(child);
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(startable.answerDeadlineMs)]);
  try {
    while (child.endedBy === null && !deadline.aborted) {
      if (await startable.answers(deadline)) return { process: child.process, exited: child.exited, stop };

      await Promise.race([delay(PROBE_STEP_MS), child.exited]);
    }
  } catch (error) {
    await stop();
    throw error;
  }
  const reason =
    child.endedBy ??
    (signal.aborted ? 'no longer wanted' : `no response within ${startable.answerDeadlineMs / 1000} s`);
  await stop();
  throw notStarted(reason);
}
