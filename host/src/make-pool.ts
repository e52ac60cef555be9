// Configures the daemon's warm pool: its pace, the size of its VMs, and its view of the host's
// memory.
import { availableParallelism } from 'node:os';
import type { Logger } from 'pino';
import { readHost, type Amounts } from './vm/admission.ts';
import type { HostConfig } from './config.ts';
import type { DataFolder } from './vm/directory/data-folder.ts';
import type { Guests } from './guest/client.ts';
import type { VmDriver } from './vm/driver.ts';
import { TEMPLATE_SIZE } from './vm/machine-size.ts';
import { PoolDirectory } from './pool/directory.ts';
import { WarmPool } from './pool/pool.ts';

/** Making a VM keeps one core busy for a second; leave the others to VMs. */
const CORES_PER_MAKING = 4;
/** A create's first command arrives within this time, or at an unknown one. */
const QUIET_MS = 300;
/** Also less than the guest's keep-alive timeout (75 s). */
const EXERCISE_AFTER_MS = 60_000;

/** Deadline factor: making a pool VM has low priority, and no caller waits. */
const MAKE_DEADLINE_FACTOR = 3;

/** @param promised total allocatable resources, and the part held by VMs */
export function makePool(
  config: HostConfig,
  data: DataFolder,
  driver: VmDriver,
  guests: Guests,
  log: Logger,
  promised: () => { capacity: Amounts; reserved: Amounts },
): WarmPool {
  return new WarmPool({
    driver,
    guests,
    directory: new PoolDirectory(data.pool),
    log,
    encryptDisks: config.encryptDisks,
    size: TEMPLATE_SIZE,
    deadlineMs: config.createDeadlineMs * MAKE_DEADLINE_FACTOR,
    limits: config.pool,
    pace: {
      atOnce: Math.max(1, Math.floor(availableParallelism() / CORES_PER_MAKING)),
      quietMs: QUIET_MS,
      exerciseAfterMs: EXERCISE_AFTER_MS,
    },
    readMemory: () => {
      const { capacity, reserved } = promised();
      return {
        unpromisedMib: capacity.memoryMib - reserved.memoryMib,
        spareMib: readHost(config.dataFolder, []).memAvailableMib - config.policy.memoryReserveMib,
      };
    },
  });
}
