// The SysV shared memory of a killed PostgreSQL, which the kernel keeps. The next server on the
// same data removes it; without that data nothing does.
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
/** Line of postmaster.pid with key and id of the segment. */
const SEGMENT_LINE = 6;
/** Field of /proc/sysvipc/shm with the number of processes. */
const ATTACHED_FIELD = 6;

/** Removes the segment named by a postmaster.pid unless a process uses it. */
export async function removeSharedMemory(postmasterPid: string): Promise<void> {
  const [key, id] = (postmasterPid.split('\n')[SEGMENT_LINE] ?? '').trim().split(/\s+/).map(Number);
  if (id === undefined) return;
  const [, ...segments] = (await readFile('/proc/sysvipc/shm', 'latin1')).trimEnd().split('\n');
  const isUnused = segments.some((line) => {
    const fields = line.trim().split(/\s+/).map(Number);
    // The kernel reuses ids: the key is PostgreSQL's own.
    return fields[0] === key && fields[1] === id && fields[ATTACHED_FIELD] === 0;
  });
  if (isUnused) await run('ipcrm', ['--shmem-id', String(id)]);
}
