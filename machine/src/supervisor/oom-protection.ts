// Protects the supervisor and its services from the kernel's OOM killer.
import { readFileSync, writeFileSync } from 'node:fs';
import { hasCode } from '@berth/os/errors.ts';

const FILE = '/proc/self/oom_score_adj';
/**
 * Range: -1000 (never killed) to 1000 (killed first). VMs have 1000
 * (host/src/vm/qemu/process/launch.ts) and are killed before the services in any case; this also
 * protects them from other programs of the host.
 */
const SERVICE_OOM_SCORE = -500;

/**
 * For this process and those that it starts from now on. Without the right (CAP_SYS_RESOURCE)
 * nothing changes.
 */
export function protectFromOomKiller(file: string = FILE): void {
  if (Number(readFileSync(file, 'latin1')) <= SERVICE_OOM_SCORE) return;
  try {
    writeFileSync(file, String(SERVICE_OOM_SCORE));
  } catch (error) {
    if (!hasCode(error, 'EACCES', 'EPERM')) throw error;
  }
}
