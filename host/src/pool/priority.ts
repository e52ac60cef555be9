// How much of the processor a machine's process gets while others want it: less while it only
// prepares to be of use, the usual as soon as it belongs to someone. Linux keeps this for each
// thread, and, where sessions share the processor by group (autogroup), for each session.
import { readdirSync, writeFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { isSame } from '@berth/os/process-identity.ts';

/**
 * From -20 (first) to 19 (last): a third of the usual share. With 10, a tenth, a machine took most
 * of a minute to be made where VMs kept the processors busy.
 */
const BACKGROUND = 5;
const USUAL = 0;
const PASSES_MAX = 10;

/**
 * Lets the process stand back. Without root's rights it could not be undone, and nothing is done.
 */
export async function standBack(process: ProcessIdentity): Promise<void> {
  await setAll(process, BACKGROUND);
}

/** Gives the process the usual share again. */
export async function standEqual(process: ProcessIdentity): Promise<void> {
  await setAll(process, USUAL);
}

async function setAll(target: ProcessIdentity, nice: number): Promise<void> {
  if (process.getuid?.() !== 0 || !(await isSame(target))) return;

  const { pid } = target;
  try {
    writeFileSync(`/proc/${pid}/autogroup`, `${nice}`);
  } catch (error) {
    tolerate(error);
  }
  // A thread has the share of the one that started it: until a look finds nothing to change, one
  // may have been missed.
  for (let pass = 0; pass < PASSES_MAX && setThreads(pid, nice); pass += 1);
}

/** Whether a thread was found that had another. */
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
    tolerate(error);
  }
  return changed;
}

/**
 * A kernel without groups of sessions, or a thread or process that ended meanwhile: nothing is left
 * to be set.
 */
function tolerate(error: unknown): void {
  const { code, info } = error as { code?: string; info?: { code?: string } };
  if (!['ENOENT', 'ESRCH', 'EINVAL'].includes(info?.code ?? code ?? '')) throw error;
}
