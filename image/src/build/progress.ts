// What a build tells its caller while it runs, and how a terminal or a log shows it. Draws nothing
// but text; knows no step by name.
import type { Writable } from 'node:stream';

export interface Progress {
  /** Stable name of the step, for example `download`. */
  step: string;
  /** What is happening, for people. */
  message: string;
  /** How many of `total` are done; both absent where there is nothing to count. */
  done?: number;
  total?: number;
}

export type OnProgress = (progress: Progress) => void;

/**
 * Shows progress as lines: one when a step begins, one when it ends, and on a terminal a counter
 * that is overwritten in place.
 */
export function renderProgress(output: Writable & { isTTY?: boolean; columns?: number }): {
  report: OnProgress;
  end: () => void;
} {
  let current: { progress: Progress; startedMs: number } | null = null;
  const seconds = (startedMs: number): string => `${((performance.now() - startedMs) / 1000).toFixed(1)} s`;
  const end = (): void => {
    if (current === null) return;
    output.write(`${output.isTTY ? '\r\u001b[K' : ''}  ${current.progress.message} (${seconds(current.startedMs)})\n`);
    current = null;
  };
  const report: OnProgress = (progress) => {
    if (current === null || current.progress.step !== progress.step) {
      end();
      current = { progress, startedMs: performance.now() };
      if (!output.isTTY) output.write(`  ${progress.message} ...\n`);
    }
    current.progress = progress;
    if (!output.isTTY) return;
    const count = progress.total === undefined ? '' : ` ${progress.done ?? 0}/${progress.total}`;
    output.write(`\r\u001b[K  ${progress.message}${count}`.slice(0, (output.columns ?? 80) + 4));
  };
  return { report, end };
}
