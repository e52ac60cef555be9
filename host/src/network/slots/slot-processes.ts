// Finds and ends the processes of a network slot, by namespace or uid, independent of any record.
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { endProcess, readProcess } from '@berth/os/process-identity.ts';
import { nullOn } from '@berth/os/errors.ts';
import type { Slot } from './slot.ts';

/**
 * Scan limit. A process that was forking is gone with its child after the second scan; more scans
 * indicate a fault of the host.
 */
const SCANS = 5;

/**
 * Ends all of them and resolves with their number. QEMU enters the namespace before it takes the
 * slot's uid, and keeps the uid even if the namespace has lost its name.
 */
export async function endSlotProcesses(slot: Pick<Slot, 'namespacePath' | 'uid'>): Promise<number> {
  let ended = 0;
  for (let look = 0; look < SCANS; look += 1) {
    const found = await slotProcesses(slot);
    if (found.length === 0) return ended;

    ended += found.length;
    await Promise.all(found.map((process) => endProcess(process)));
  }
  throw new Error(`processes in ${slot.namespacePath} reappear after being killed`);
}

async function slotProcesses(slot: Pick<Slot, 'namespacePath' | 'uid'>): Promise<ProcessIdentity[]> {
  const namespace = ifThere(() => `net:[${statSync(slot.namespacePath).ino}]`);
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const here = pids.filter(
    (pid) =>
      (namespace !== null && ifThere(() => readlinkSync(`/proc/${pid}/ns/net`)) === namespace) || isUser(pid, slot.uid),
  );
  const processes = await Promise.all(here.map((pid) => readProcess(Number(pid))));
  return processes.filter((process) => process !== null);
}

/**
 * Containers on this host may run a Berth with the same uids. Their VMs are one pid namespace
 * deeper than ours.
 */
function isUser(pid: string, uid: number): boolean {
  const status = ifThere(() => readFileSync(`/proc/${pid}/status`, 'latin1')) ?? '';
  const pids = /^NSpid:\s+(.*)$/m.exec(status)?.[1]?.split(/\s+/) ?? [];
  return Number(/^Uid:\s+(\d+)/m.exec(status)?.[1] ?? Number.NaN) === uid && pids.length <= 2;
}

/**
 * Null for a vanished process or namespace, and for kernel threads and zombies, which show no
 * namespace.
 */
function ifThere<T>(read: () => T): T | null {
  return nullOn(['ENOENT', 'ESRCH', 'EACCES', 'EINVAL'], read);
}
