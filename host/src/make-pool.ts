// The pool as the daemon runs it: its pace, the size of its machines, and what it may know of the
// host's memory.
import { availableParallelism } from 'node:os';
import type { Logger } from 'pino';
import { readMachine, type Amounts } from './vm/admission.ts';
import type { HostConfig } from './config.ts';
import type { DataFolder } from './vm/directory/data-folder.ts';
import type { VmDriver } from './vm/driver.ts';
import { TEMPLATE_SIZE } from './vm/machine-size.ts';
import { PoolDirectory } from './pool/directory.ts';
import { WarmPool } from './pool/pool.ts';

/** Making a machine keeps one processor busy for a second: VMs get the others. */
const CORES_PER_MAKING = 4;
/** A first command follows a create within this, or it is not known when. */
const QUIET_MS = 300;
/** Also less than the guest keeps an idle connection open (75 s). */
const EXERCISE_AFTER_MS = 60_000;

/** Making one stands back behind everything else, and nobody waits for it. */
const MAKING_PATIENCE = 3;

/** @param promised what may be handed out to VMs in all, and what they have of it */
export function makePool(
  config: HostConfig,
  data: DataFolder,
  driver: VmDriver,
  log: Logger,
  promised: () => { capacity: Amounts; reserved: Amounts },
): WarmPool {
  return new WarmPool({
    driver,
    directory: new PoolDirectory(data.pool),
    log,
    size: TEMPLATE_SIZE,
    deadlineMs: config.createDeadlineMs * MAKING_PATIENCE,
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
        spareMib: readMachine(config.dataFolder).memAvailableMib - config.policy.memoryReserveMib,
      };
    },
  });
}
