// Reads the backlog of a listening TCP socket from the kernel.
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { LISTEN_BACKLOG } from '../src/http/backlog.ts';

/** Connections that wait at most, as the kernel has it and as the service asks for it. */
export async function backlogOf(port: number): Promise<{ actual: number; expected: number }> {
  const { stdout } = await promisify(execFile)('ss', ['-ltnH', `sport = :${port}`]);
  const bound = Number(await readFile('/proc/sys/net/core/somaxconn', 'utf8'));
  return { actual: Number(stdout.trim().split(/\s+/)[2]), expected: Math.min(bound, LISTEN_BACKLOG) };
}
