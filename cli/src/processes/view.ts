// Texts about processes.
import type { ProcessData } from '@berth/sdk';
import { plainText } from '../output/plain-text.ts';
import type { Style } from '../output/style.ts';

type End = Pick<ProcessData, 'status' | 'exitCode' | 'signal' | 'reason'>;

const REASONS: Readonly<Record<string, { status: string; end: string }>> = {
  timed_out: { status: 'timed out', end: 'was killed at its timeout' },
  out_of_memory: { status: 'out of memory', end: 'was killed: the sandbox was out of memory' },
  lost: { status: 'lost', end: 'was lost: the sandbox was started from its disk' },
};

/** `running`, `exited 0`, `killed SIGTERM`, `timed out`, `out of memory` or `lost`. */
export function statusText({ status, exitCode, signal, reason }: End): string {
  if (status === 'running') return status;
  if (reason !== null) return REASONS[reason]?.status ?? plainText(reason);
  return signal === null ? `exited ${exitCode ?? ''}`.trim() : `killed ${plainText(signal)}`;
}

export function statusStyle({ status, exitCode }: End): Style {
  if (status === 'running') return 'green';
  return exitCode === 0 ? 'dim' : 'red';
}

/** A sentence about the end of a process or, if it still runs, of its output. */
export function endText({ id, status, exitCode, signal, reason }: End & { id: string }): string {
  if (status === 'running') return `${id} closed its output, and still runs`;
  if (reason !== null) return `${id} ${REASONS[reason]?.end ?? `ended: ${plainText(reason)}`}`;
  if (signal !== null) return `${id} was killed by ${plainText(signal)}`;
  return exitCode === null ? `${id} exited` : `${id} exited with code ${exitCode}`;
}
