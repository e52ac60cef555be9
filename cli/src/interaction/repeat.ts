// Repeats work at an interval. Ctrl-C ends it without a failure.
import { setTimeout as delay } from 'node:timers/promises';
import { BerthError } from '@berth/sdk';
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
    return exitCodeOf(signal);
  }
}

/** The exit code of an aborted command. */
export function exitCodeOf({ reason }: AbortSignal): number {
  return reason instanceof CliFailure ? reason.exitCode : EXIT_BY_SIGNAL.SIGINT;
}

/** Consecutive failures before {@link tolerant} gives up; the service may be restarting. */
const MAX_FAILED_POLLS = 30;

/**
 * Resolves with null after a failure that passes. @param notes called with the first of several
 * failures, and after the last
 */
export function tolerant<T>(
  poll: () => Promise<T>,
  notes: { failed(error: BerthError): void; recovered?(): void },
): () => Promise<T | null> {
  let failed = 0;
  return async () => {
    try {
      const result = await poll();
      if (failed > 0) notes.recovered?.();
      failed = 0;
      return result;
    } catch (error) {
      failed += 1;
      if (!(error instanceof BerthError) || !error.retryable || failed > MAX_FAILED_POLLS) throw error;
      if (failed === 1) notes.failed(error);
      return null;
    }
  };
}
