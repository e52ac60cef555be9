// Finds processes of fake VMs by a mark in their command line, also those left by a killed daemon,
// independent of any record.
import { readdir, readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { readProcess } from '@berth/os/process-identity.ts';
import { nullIf } from '@berth/os/errors.ts';
import { MARKER_NAME } from './jail.ts';

/** Owner of a fake VM's process. */
export interface Mark {
  instanceId: string;
  vmId: string;
  folder: string;
}

interface MarkedProcess {
  process: ProcessIdentity;
  mark: Mark;
}

export function writeMark({ instanceId, vmId, folder }: Mark): string {
  return `${instanceId}:${vmId}:${folder}`;
}

/** The outer and inner bwrap processes of the matching fake VMs. */
export async function findMarked(wanted: (mark: Mark) => boolean): Promise<MarkedProcess[]> {
  const found: MarkedProcess[] = [];
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;

    const process = await readProcess(Number(name));
    const mark = process === null ? null : await readMark(process.pid);
    if (process !== null && mark !== null && wanted(mark)) found.push({ process, mark });
  }
  return found;
}

async function readMark(pid: number): Promise<Mark | null> {
  const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(nullIf('ENOENT', 'ESRCH'));
  if (commandLine === null) return null;

  const argv = commandLine.split('\0');
  if (basename(argv[0] ?? '') !== 'bwrap') return null;

  const value = argv[argv.indexOf(MARKER_NAME) + 1] ?? '';
  const match = /^([^:]+):([^:]+):(\/.*)$/s.exec(argv.includes(MARKER_NAME) ? value : '');
  const [, instanceId, vmId, folder] = match ?? [];
  return instanceId === undefined || vmId === undefined || folder === undefined ? null : { instanceId, vmId, folder };
}
