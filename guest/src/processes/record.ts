// Files of a process: its settings, and its end once the keeper has seen it. Both survive the VM.
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nullOn } from '@berth/os/errors.ts';
import { PROCESS_LIMITS } from '@berth/protocol/guest-limits.ts';
import type { GuestProcess } from '@berth/protocol/processes.ts';
import { signalName } from '../keeper/signal-name.ts';

/** Settings of a process, known since its start. */
export type ProcessRecord = Omit<GuestProcess, 'end'> & {
  /** Identifies the run of the kernel in which it started. */
  bootId: string;
  /** Null: before the start, or unknown. */
  pid: number | null;
  outputBytes: number;
  /** Hash of the request that started it. */
  digest: string;
};

type End = NonNullable<GuestProcess['end']>;

const CONTROL = /\p{Cc}/gu;

/** The start of a text for views: well-formed and without control characters. */
export function shownText(text: string): string {
  return text.slice(0, PROCESS_LIMITS.shownCharacters).toWellFormed().replaceAll(CONTROL, ' ');
}

/** Null: the start was interrupted. */
export function readRecord(folder: string): ProcessRecord | null {
  const text = nullOn(['ENOENT', 'ENOTDIR'], () => readFileSync(join(folder, 'process.json'), 'utf8'));
  try {
    return text === null ? null : (JSON.parse(text) as ProcessRecord);
  } catch {
    return null;
  }
}

export function writeRecord(folder: string, record: ProcessRecord): void {
  replaceFile(join(folder, 'process.json'), JSON.stringify(record));
}

/** Null while it runs. The keeper writes the numbers, this daemon the reason. */
export function readEnd(folder: string): End | null {
  const text = nullOn(['ENOENT'], () => readFileSync(join(folder, 'end'), 'latin1'));
  const [code, signal, timedOut, endedUnixMs] = text?.split(' ').map(Number) ?? [];
  if (code === undefined || signal === undefined || endedUnixMs === undefined) return null;
  const reason = nullOn(['ENOENT'], () => readFileSync(join(folder, 'reason'), 'latin1'));
  return {
    exitCode: signal === 0 && reason !== 'lost' ? code : null,
    signal: signal === 0 ? null : signalName(signal),
    reason: timedOut === 1 ? 'timed_out' : (reason as End['reason']),
    endedUnixMs,
  };
}

/** Marks a process that the kernel has killed for memory. Call before its end is told. */
export function writeReason(folder: string, reason: 'out_of_memory' | 'lost'): void {
  replaceFile(join(folder, 'reason'), reason);
}

/** Nobody saw the end. */
export function writeLost(folder: string): void {
  writeReason(folder, 'lost');
  replaceFile(join(folder, 'end'), `0 0 0 ${Date.now()}\n`);
}

function replaceFile(path: string, text: string): void {
  writeFileSync(`${path}.new`, text, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}
