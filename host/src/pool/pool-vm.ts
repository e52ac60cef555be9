// Makes, exercises and ends a pool VM. Each step is on disk before the next begins. Must not know
// the number of pool VMs or their future owners.
import type { Logger } from 'pino';
import type { GuestClient, Guests } from '../guest/client.ts';
import { boundedMessageOf } from '../vm/host-error.ts';
import { crashPoint } from '../vm/crash-point.ts';
import { DriverError, type DriverState, type RunningVm, type VmDriver, type VmSize } from '../vm/driver.ts';
import { newDiskKey } from '../vm/directory/secret-folders.ts';
import type { PoolDirectory } from './directory.ts';
import { lowerPriority } from './priority.ts';
import { exercise, warmUp } from './warm-up.ts';

export interface PoolVmParts {
  driver: VmDriver;
  directory: PoolDirectory;
  guests: Guests;
  log: Logger;
  /** Size of every pool VM: the smallest. */
  size: VmSize;
  /** Encrypts disk and snapshots of each VM. */
  encryptDisks?: boolean;
  /** Deadline of a make and of each guest response. */
  deadlineMs: number;
}

export interface PoolVm {
  readonly id: string;
  /** On no disk before a create takes the VM, whose data key then seals it. Null: plain text. */
  readonly diskKey: string | null;
  readonly driverState: DriverState;
  readonly running: RunningVm;
  /** Connection with the secret of the last exercise; stays open. */
  readonly guest: GuestClient;
  /** Aborted to stop watching the process. */
  readonly watch: AbortController;
  /** Resolves when the process exits; the value means nothing once `watch` is aborted. */
  readonly gone: Promise<unknown>;
  /** Aborted when the watched process exits, so that pending guest calls fail at once. */
  readonly died: AbortSignal;
  exercisedAtMs: number;
}

/**
 * Restores a VM and warms it up at low priority. A rejection leaves nothing behind; failed clean-up
 * is logged.
 */
export async function createPoolVm(parts: PoolVmParts, id: string, stop: AbortSignal): Promise<PoolVm> {
  const { driver, directory, guests, size, deadlineMs } = parts;
  const signal = AbortSignal.any([stop, AbortSignal.timeout(deadlineMs)]);
  const watch = new AbortController();
  const diskKey = newDiskKey(parts);
  let driverState: DriverState | null = null;
  let guest: GuestClient | null = null;
  try {
    await directory.makeFolders(id);
    crashPoint('pool:folders-made');
    const running = await driver.create({
      id,
      folder: directory.driverFolder(id),
      spec: { ...size, hostname: 'waiting', sshAuthorizedKeys: [] },
      saveState: async (state) => {
        driverState = state;
        await directory.write({ version: 1, id, driverState: state });
        crashPoint('pool:driver-state-saved');
      },
      readDiskKey: async () => diskKey,
      signal,
    });
    crashPoint('pool:restored');
    await lowerPriority(running.process);
    const gone = driver.exited(running.process, watch.signal);
    const died = endOf(gone, watch.signal);
    guest = guests.clientOf(running.guest);
    await warmUp(guest, size, AbortSignal.any([signal, died]), deadlineMs);
    crashPoint('pool:warm');
    return {
      id,
      diskKey,
      driverState: driverState ?? {},
      running,
      guest,
      watch,
      gone,
      died,
      exercisedAtMs: performance.now(),
    };
  } catch (error) {
    watch.abort();
    guest?.close();
    await destroyPoolVm(parts, id, driverState);
    throw error;
  }
}

/** Runs in a waiting VM the code that a create will need. */
export async function exercisePoolVm(parts: PoolVmParts, { guest, died }: PoolVm, stop: AbortSignal): Promise<void> {
  await exercise(guest, parts.size, AbortSignal.any([stop, died]), parts.deadlineMs);
}

/**
 * Ends the process, frees its resources and removes its folder. Never rejects; the next daemon
 * finishes a failed clean-up.
 */
export async function destroyPoolVm(parts: PoolVmParts, id: string, driverState: DriverState | null): Promise<void> {
  try {
    await parts.driver.destroy(parts.directory.driverFolder(id), driverState);
    crashPoint('pool:driver-done');
    await parts.directory.remove(id);
    crashPoint('pool:removed');
  } catch (error) {
    parts.log.error({ machineId: id, err: error }, `a VM of the pool was not cleaned up: ${boundedMessageOf(error)}`);
  }
}

/**
 * Signal of a pool VM's exit, made once per VM: `gone` may not settle for days, and would keep
 * every listener an exercise adds.
 */
function endOf(gone: Promise<unknown>, unwatched: AbortSignal): AbortSignal {
  const died = new AbortController();
  void gone.then(() => {
    if (!unwatched.aborted) died.abort(new DriverError('the process of the VM exited'));
  });
  return died.signal;
}
