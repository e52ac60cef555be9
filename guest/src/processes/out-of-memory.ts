// Reports which processes the kernel has killed because memory ran out.
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { hasCode } from '@berth/os/errors.ts';

const RECORD_BYTES = 8_192;
/** More than the kernel's log holds. */
const MOST_RECORDS = 100_000;

/** Reads the kernel's log. Empty also without the permission to read it. */
export function pidsKilledForMemory(): ReadonlySet<number> {
  const pids = new Set<number>();
  let log: number;
  try {
    log = openSync('/dev/kmsg', constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return pids;
  }
  const record = Buffer.alloc(RECORD_BYTES);
  try {
    for (let count = 0; count < MOST_RECORDS; count += 1) {
      try {
        const bytes = readSync(log, record);
        const pid = /Killed process (\d+) \(/.exec(record.toString('latin1', 0, bytes))?.[1];
        if (pid !== undefined) pids.add(Number(pid));
      } catch (error) {
        // EPIPE: records were overwritten meanwhile.
        if (!hasCode(error, 'EPIPE')) return pids;
      }
    }
    return pids;
  } finally {
    closeSync(log);
  }
}
