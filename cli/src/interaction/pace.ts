// Looking again and again until somebody has seen enough: Ctrl-C is the end of that, and no
// failure.
import { setTimeout as delay } from 'node:timers/promises';
import { CliFailure, EXIT, EXIT_BY_SIGNAL } from '../output/failure.ts';

interface Pace {
  intervalSeconds: number;
  signal: AbortSignal;
  /** At most so many looks. */
  count?: number | undefined;
}

/**
 * Resolves with the exit code once there were enough looks; silently with that of the signal when
 * it ended them. What a look throws passes through.
 */
export async function again(
  { intervalSeconds, signal, count = Infinity }: Pace,
  look: () => Promise<void>,
): Promise<number> {
  try {
    for (let looks = 1; ; looks += 1) {
      await look();
      if (looks >= count) return EXIT.ok;
      await delay(intervalSeconds * 1_000, undefined, { signal });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    return signal.reason instanceof CliFailure ? signal.reason.exitCode : EXIT_BY_SIGNAL.SIGINT;
  }
}
