// The temporary folder of one run of a benchmark or of tests, and the end of everything that the
// run leaves: an interrupted program cannot remove its VMs, and those outlive their daemons.
import { execFile } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { chmod, mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { endSlotsBelow } from '@berth/host/network/abandoned-slots.ts';
import { DataKeys } from '@berth/host/vm/directory/data-keys.ts';
import { nullOn } from '@berth/os/errors.ts';
import { endProcess, readProcess } from '@berth/os/process-identity.ts';
import { removeSharedMemory } from '../roles/database/shared-memory.ts';

const run = promisify(execFile);
/** In the environment of every process of a run; services inherit variables of this prefix. */
const MARK = 'BERTH_RUN_FOLDER';
/** A stopping host daemon unmakes its network slots. */
const GRACE_MS = 30_000;
const INSTANCE_ID = /^[a-z2-7]{8}$/;
/** Scan limit: a process that was forking leaves a child for the next scan. */
const SCANS = 5;

/** Runs the work with the variables of a new folder, then removes all that is left of the run. */
export async function withRunFolder<T>(work: (environment: Record<string, string>) => Promise<T>): Promise<T> {
  // Short: paths of unix sockets have at most 107 bytes.
  const folder = await mkdtemp(join(tmpdir(), 'b-'));
  // Like /tmp: tests use folders as several users.
  await chmod(folder, 0o1777);
  try {
    return await work({ TMPDIR: folder, [MARK]: folder });
  } finally {
    await endMarked(folder);
    await endSlotsBelow(folder);
    await removeOutside(folder);
    for (const mountPoint of mountsBelow(folder)) await run('umount', ['--lazy', mountPoint]);
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** Removes what data folders in the run's folder own elsewhere on the host. */
async function removeOutside(folder: string): Promise<void> {
  for (const name of await readdir(folder, { recursive: true })) {
    const path = join(folder, name);
    if (basename(name) === 'instance-id') {
      const id = (await readFile(path, 'utf8')).trim();
      if (INSTANCE_ID.test(id)) await DataKeys.removeAll(id);
    }
    if (basename(name) === 'postmaster.pid') await removeSharedMemory(await readFile(path, 'utf8'));
  }
}

/** Ends processes with the folder's path in a variable: some get only variables with its files. */
async function endMarked(folder: string): Promise<void> {
  for (let scan = 0; scan < SCANS; scan += 1) {
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    const marked = pids.filter((pid) => {
      const environment = nullOn(['ENOENT', 'ESRCH', 'EACCES', 'EPERM'], () =>
        readFileSync(`/proc/${pid}/environ`, 'latin1'),
      );
      return environment?.includes(folder) === true;
    });
    const processes = await Promise.all(marked.map((pid) => readProcess(Number(pid))));
    const running = processes.filter((process) => process !== null);
    if (running.length === 0) return;
    await Promise.all(running.map((process) => endProcess(process, { graceMs: GRACE_MS })));
  }
  throw new Error(`processes of the run in ${folder} reappear after being killed`);
}

/** Mount points below the folder, the deepest first. */
function mountsBelow(folder: string): string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((path) => path.startsWith(`${folder}/`))
    .toReversed();
}
