// Repeats work at an interval. Ctrl-C ends it without a failure.
import { setTimeout as delay } from 'node:timers/promises';
import { CliFailure, EXIT, EXIT_BY_SIGNAL } from '../output/failure.ts';

interface PollOptions {
  intervalSeconds: number;
  signal: AbortSignal;
  /** Maximum number of repetitions. */
  count?: number | undefined;
}

/**
 * Resolves with the exit code: 0 after `count` repetitions, or that of the signal. Passes errors
 * on.
 */
export async function repeat(
  { intervalSeconds, signal, count = Infinity }: PollOptions,
  poll: () => Promise<void>,
): Promise<number> {
  try {
    for (let polls = 1; ; polls += 1) {
      await poll();
      if (polls >= count) return EXIT.ok;
      await delay(intervalSeconds * 1_000, undefined, { signal });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    return signal.reason instanceof CliFailure ? signal.reason.exitCode : EXIT_BY_SIGNAL.SIGINT;
  }
}
