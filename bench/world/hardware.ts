// The hardware that figures were measured on.
import { cpus, totalmem } from 'node:os';

/** Processor, cores and memory, as reports print them. */
export function hardware(): string {
  const memoryGib = Math.round(totalmem() / 2 ** 30);
  return `${cpus()[0]?.model ?? 'unknown CPU'}, ${cpus().length} cores, ${memoryGib} GiB`;
}
