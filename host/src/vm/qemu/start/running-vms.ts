// Running VMs: started in their slots, with control connections and observed ends. The driver
// changes a running VM.
import { GUEST_NETWORK, GUEST_PORT } from '@berth/protocol/guest.ts';
import { MODEL_PORT } from '../../../network/slots/firewall.ts';
import { boundedMessageOf } from '../../host-error.ts';
import { DriverError, type CreateVm, type RunningVm } from '../../driver.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { endProcess, isSame } from '@berth/os/process-identity.ts';
import type { ClaimedSlot } from '../../../network/claims.ts';
import { Control } from '../process/control.ts';
import type { SeenEnd } from '../process/death.ts';
import type { Slot } from '../../../network/slots/slot.ts';
import type { QmpEvent } from '../machine/qmp.ts';
import type { RunningQemu, StartOrder } from './start.ts';
import type { VmState } from './state.ts';

/** Time for an adopted QEMU's control socket to respond; QEMU is otherwise idle. */
const ADOPT_DEADLINE_MS = 5_000;

type Log = (level: 'info' | 'warn', message: string, data: object) => void;

/** Limits with which all VMs of a host start. */
type StartLimits = Pick<StartOrder, 'cgroups' | 'rates'>;

export class RunningVms {
  readonly #log: Log;
  readonly #limits: StartLimits;
  readonly #running = new Map<string, { vmId: string; control: Control }>();

  constructor(limits: StartLimits, log: Log) {
    this.#limits = limits;
    this.#log = log;
  }

  /** Starts a VM in its slot, and keeps its control connection. */
  async start(
    what: string,
    vm: Pick<CreateVm, 'folder' | 'saveState' | 'signal' | 'readDiskKey'>,
    { slot, state }: ClaimedSlot<VmState>,
    start: (order: StartOrder) => Promise<RunningQemu>,
  ): Promise<RunningVm> {
    const early: QmpEvent[] = [];
    let control: Control | null = null;
    const order: StartOrder = {
      vmId: state.vmId,
      folder: vm.folder,
      slot,
      ...this.#limits,
      diskGib: state.diskGib,
      diskKey: await diskKeyOf(vm),
      signal: vm.signal,
      onStarted: (process) => vm.saveState({ ...state, process } satisfies VmState),
      onEvent: (event) => (control === null ? void early.push(event) : control.note(event)),
    };
    const { process, qmp, ended, times } = await withContext(what, vm.signal, () => start(order));
    control = this.#add(state.vmId, process, ended);
    control.attach(qmp);
    early.forEach((event) => control?.note(event));
    this.#log('info', `${what}: done`, { machineId: state.vmId, slot: slot.number, pid: process.pid, ...times });
    return { process, ...endpointsOf(slot) };
  }

  /** Null if this process's control connection was never requested. */
  find(process: ProcessIdentity): Control | null {
    return this.#running.get(keyOf(process))?.control ?? null;
  }

  /**
   * Memory that had run out when the kernel killed an exited process.
   * @param killed the kernel killed some process of the host for lack of memory at about that time
   */
  async outOfMemory(process: ProcessIdentity, killed: boolean): Promise<SeenEnd['outOfMemory']> {
    const vmId = this.#running.get(keyOf(process))?.vmId;
    const known = vmId === undefined ? 'unknown' : await this.#limits.cgroups.outOfMemory(vmId);
    if (known === 'unknown') return killed ? 'host' : null;
    return known === 'none' ? null : known;
  }

  /** The control connection of a VM, possibly of an earlier daemon. */
  controlOf(vmId: string, process: ProcessIdentity): Control {
    return this.find(process) ?? this.#add(vmId, process, null);
  }

  /** Reconnects to a QEMU of an earlier daemon; adopts it without a control socket too. */
  async adopt(vmId: string, process: ProcessIdentity): Promise<void> {
    const control = this.controlOf(vmId, process);
    try {
      await control.resume({ signal: AbortSignal.timeout(ADOPT_DEADLINE_MS), deadlineMs: ADOPT_DEADLINE_MS });
    } catch (error) {
      if (error instanceof DriverError && (await isSame(process))) throw error;

      // The recorded process runs. Without its control socket the guest still works and can be
      // ended.
      this.#log('warn', 'the control socket of an adopted QEMU does not respond', {
        pid: process.pid,
        error: boundedMessageOf(error),
      });
      control.resumeLater(boundedMessageOf(error));
    }
  }

  /** Resolves when the process is gone, and its control group. */
  async end({ vmId, process }: VmState): Promise<void> {
    if (process !== undefined) {
      this.find(process)?.close();
      this.#running.delete(keyOf(process));
      await endProcess(process);
    }
    await this.#limits.cgroups.remove(vmId);
  }

  /** Closes the control connections; the VMs keep running. */
  close(): void {
    for (const { control } of this.#running.values()) control.close();

    this.#running.clear();
  }

  #add(vmId: string, process: ProcessIdentity, ended: AbortSignal | null): Control {
    const control = new Control(process, ended, (message, data) =>
      this.#log('warn', message, { machineId: vmId, ...data }),
    );
    this.#running.set(keyOf(process), { vmId, control });
    return control;
  }
}

/** Null for a VM in plain text. */
export async function diskKeyOf(vm: Pick<CreateVm, 'readDiskKey'>): Promise<string | null> {
  return (await vm.readDiskKey?.()) ?? null;
}

/** Addresses of its guest daemon, and of the model gateway. */
export function endpointsOf(slot: Slot): Pick<RunningVm, 'guest' | 'models'> {
  return {
    guest: { address: slot.address, port: GUEST_PORT },
    models: {
      listen: { address: slot.hostAddress, port: MODEL_PORT },
      url: `http://${GUEST_NETWORK.gateway}:${MODEL_PORT}`,
    },
  };
}

/**
 * Wraps a failure in a {@link DriverError} that names the operation; an abort of the caller passes
 * unchanged.
 */
export async function withContext<T>(what: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw signal.aborted || error instanceof DriverError
      ? error
      : new DriverError(`${what}: ${boundedMessageOf(error)}`, { cause: error });
  }
}

function keyOf({ pid, startTicks }: ProcessIdentity): string {
  return `${pid}:${startTicks}`;
}
