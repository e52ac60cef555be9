// CPU priority of a VM's process: reduced while it waits in the pool, normal once it has an owner.
// Linux keeps the nice value per thread, and with autogroup also per POSIX session.
import { readdirSync, writeFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { isSame } from '@berth/os/process-identity.ts';

/**
 * Nice value, from -20 (first) to 19 (last): a third of the usual share. With 10, a tenth, making
 * one VM took most of a minute on a busy host.
 */
const BACKGROUND = 5;
const USUAL = 0;
const PASSES_MAX = 10;

/** Lowers the priority. Does nothing without root, because it could not be undone. */
export async function lowerPriority(process: ProcessIdentity): Promise<void> {
  await setAll(process, BACKGROUND);
}

export async function standEqual(process: ProcessIdentity): Promise<void> {
  await setAll(process, USUAL);
}

async function setAll(target: ProcessIdentity, nice: number): Promise<void> {
  if (process.getuid?.() !== 0 || !(await isSame(target))) return;

  const { pid } = target;
  try {
    writeFileSync(`/proc/${pid}/autogroup`, `${nice}`);
  } catch (error) {
    ignoreGone(error);
  }
  // A thread inherits its creator's share: repeat until a pass changes nothing, or a new thread may
  // be missed.
  for (let pass = 0; pass < PASSES_MAX && setThreads(pid, nice); pass += 1);
}

/** True if a thread's priority was changed. */
function setThreads(pid: number, nice: number): boolean {
  let changed = false;
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      const tid = Number(thread);
      if (getPriority(tid) !== nice) {
        setPriority(tid, nice);
        changed = true;
      }
    }
  } catch (error) {
    ignoreGone(error);
  }
  return changed;
}

/** A kernel without autogroup, or an exited thread or process: nothing to set. */
function ignoreGone(error: unknown): void {
  const { code, info } = error as { code?: string; info?: { code?: string } };
  if (!['ENOENT', 'ESRCH', 'EINVAL'].includes(info?.code ?? code ?? '')) throw error;
}
