// One machine of the pool: how it is made, exercised and ended. Each step is on disk before the
// next begins. Must not know how many there are, nor who gets them.
import type { Logger } from 'pino';
import { GuestClient } from '../guest/client.ts';
import { messageOf } from '../vm/host-error.ts';
import { crashPoint } from '../vm/crash-point.ts';
import { DriverError, type DriverState, type RunningVm, type VmDriver, type VmSize } from '../vm/driver.ts';
import type { PoolDirectory } from './directory.ts';
import { standBack } from './priority.ts';
import { exercise, warmUp } from './warm-up.ts';

/** What making and ending works with. */
export interface MachineParts {
  driver: VmDriver;
  directory: PoolDirectory;
  log: Logger;
  /** Of every machine in the pool: the smallest there is. */
  size: VmSize;
  /** For making one, and for each of its answers. */
  deadlineMs: number;
}

export interface PoolMachine {
  readonly id: string;
  readonly driverState: DriverState;
  readonly running: RunningVm;
  /** Carries the secret of the last exercise; its connection stays open. */
  readonly guest: GuestClient;
  /** Aborted to no longer watch the process. */
  readonly watch: AbortController;
  /** Resolves when the process ended, or with nothing of meaning once `watch` was aborted. */
  readonly gone: Promise<unknown>;
  /**
   * Aborted when the process ended under watch: what is asked of the guest then is waited for no
   * longer than its answer can come.
   */
  readonly died: AbortSignal;
  exercisedAtMs: number;
}

/**
 * Restores a machine and warms it up, at low priority. When it rejects nothing of the machine is
 * left, or the log says what.
 */
export async function makeMachine(parts: MachineParts, id: string, stop: AbortSignal): Promise<PoolMachine> {
  const { driver, directory, size, deadlineMs } = parts;
  const signal = AbortSignal.any([stop, AbortSignal.timeout(deadlineMs)]);
  const watch = new AbortController();
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
      signal,
    });
    crashPoint('pool:restored');
    await standBack(running.process);
    const gone = driver.exited(running.process, watch.signal);
    const died = endOf(gone, watch.signal);
    guest = new GuestClient(running.guest);
    await warmUp(guest, size, AbortSignal.any([signal, died]), deadlineMs);
    crashPoint('pool:warm');
    return { id, driverState: driverState ?? {}, running, guest, watch, gone, died, exercisedAtMs: performance.now() };
  } catch (error) {
    watch.abort();
    guest?.close();
    await endMachine(parts, id, driverState);
    throw error;
  }
}

/** Lets a machine that has waited run the code that a create will ask of it. */
export async function exerciseMachine(
  parts: MachineParts,
  { guest, died }: PoolMachine,
  stop: AbortSignal,
): Promise<void> {
  await exercise(guest, parts.size, AbortSignal.any([stop, died]), parts.deadlineMs);
}

/**
 * Ends the process, frees what it has and removes its folder. Never rejects; what could not be done
 * is left to the next daemon.
 */
export async function endMachine(parts: MachineParts, id: string, driverState: DriverState | null): Promise<void> {
  try {
    await parts.driver.destroy(parts.directory.driverFolder(id), driverState);
    crashPoint('pool:driver-done');
    await parts.directory.remove(id);
    crashPoint('pool:removed');
  } catch (error) {
    parts.log.error({ machineId: id, err: error }, `a machine of the pool was not cleaned up: ${messageOf(error)}`);
  }
}

/**
 * One signal for as long as the machine waits: `gone` may not settle for days, and would keep
 * whatever each exercise hung on it.
 */
function endOf(gone: Promise<unknown>, unwatched: AbortSignal): AbortSignal {
  const died = new AbortController();
  void gone.then(() => {
    if (!unwatched.aborted) died.abort(new DriverError('the process of the machine ended'));
  });
  return died.signal;
}
