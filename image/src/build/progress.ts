// Progress events of a build, and their display on a terminal or in a log. Text only; knows no step
// by name.
import type { Writable } from 'node:stream';

export interface Progress {
  /** Stable name of the step, for example `download`. */
  step: string;
  message: string;
  /** Number done out of `total`; both absent if nothing is counted. */
  done?: number;
  total?: number;
}

export type OnProgress = (progress: Progress) => void;

/**
 * Shows progress as lines: at the start and end of a step, and on a terminal a counter updated in
 * place.
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
