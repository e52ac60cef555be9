// The process that serves a PostgreSQL folder: server.json. Pids in postmaster.pid belong to a pid
// namespace and mean nothing outside.
import { join } from 'node:path';
import { z } from 'zod';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { writeDurably, readIfPresent } from '@berth/os/durable-file.ts';

const serverRecord = z.object({ pid: z.int(), startTicks: z.string(), bootId: z.string() });

export async function writeRecord(folder: string, process: ProcessIdentity): Promise<void> {
  await writeDurably(join(folder, 'server.json'), `${JSON.stringify(process)}\n`, 0o644);
}

/** The last process that served the folder, or null. The caller checks if it still runs. */
export async function readRecord(folder: string): Promise<ProcessIdentity | null> {
  const text = await readIfPresent(join(folder, 'server.json'));
  return text === null ? null : serverRecord.parse(JSON.parse(text));
}
