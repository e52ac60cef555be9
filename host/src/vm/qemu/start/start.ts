// Starts a VM's QEMU in its jail and opens its control socket. The caller loads memory and devices
// (restore.ts, boot.ts, snapshot/wake.ts); the driver owns slots, records and ends.
//
//   launched -> recorded, control socket open -> state loaded by the caller -> running
import { basename, join } from 'node:path';
import { z } from 'zod';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { qemuArgv, VM_FILES } from '../machine/argv.ts';
import { passphraseOf } from '../machine/luks.ts';
import type { RestoreBase } from '../template/bases.ts';
import type { VmCgroups } from '../process/cgroups.ts';
import { limitDisk, type DiskRates } from '../process/disk-rates.ts';
import { jailArgv } from '../process/jail.ts';
import { launchQemu, reasonOf, type LaunchedQemu } from '../process/launch.ts';
import type { VmSize } from '../../driver.ts';
import { TEMPLATE_SIZE, VCPU_MAX } from '../../machine-size.ts';
import type { Slot } from '../../../network/slots/slot.ts';
import type { Plugged } from '../machine/plugged.ts';
import { openQmp, type QmpEvent, type QmpSession } from '../machine/qmp.ts';
import { QEMU_PROGRAM } from '../machine/qemu-version.ts';

/** A start of a VM. */
export interface StartOrder {
  vmId: string;
  /** The VM's folder, with its disk and control socket. */
  folder: string;
  slot: Slot;
  cgroups: VmCgroups;
  rates: DiskRates;
  /** Size of its disk. */
  diskGib: number;
  /** Null for a disk in plain text. */
  diskKey: string | null;
  /** Called with the process as soon as it exists. */
  onStarted(process: ProcessIdentity): Promise<void>;
  onEvent(event: QmpEvent): void;
  signal: AbortSignal;
}

/** Initial state: devices whose state will be loaded, or the kernel of the image. */
type StartState =
  | { kind: 'restore'; size: Pick<VmSize, 'vcpu' | 'memoryMib'>; devices: Pick<Plugged, 'cpus' | 'modules'> }
  | { kind: 'reboot' };

/** A QEMU with paused vCPUs. */
export interface PausedQemu {
  process: ProcessIdentity;
  qmp: QmpSession;
  launched: LaunchedQemu;
  /** Aborts with the order's signal, and when QEMU exits. */
  signal: AbortSignal;
  /** Milliseconds since the start. */
  elapsedMs: () => number;
  /** Resolves when the process is on record; rejects if recording failed. */
  recorded: Promise<void>;
  /**
   * Resumes the vCPUs once the process is on record. Before `onSent` is called they certainly did
   * not run.
   */
  run: (onSent?: () => void) => Promise<void>;
}

/** A running VM. */
export interface RunningQemu {
  process: ProcessIdentity;
  qmp: QmpSession;
  /** Aborts with QEMU's last messages when it exits. */
  ended: AbortSignal;
  /** Milliseconds since the start at which each step completed. */
  times: Readonly<Record<string, number>>;
}

/**
 * Starts QEMU and calls `bring` to load its state. Rejects with the error of `bring`, DriverError,
 * QmpError or the signal's reason, and with QEMU's last messages if it exited meanwhile; the caller
 * then ends what still runs. `onStarted` has settled before that, so the caller may write the
 * record again.
 */
export async function startQemu(
  base: RestoreBase,
  order: StartOrder,
  state: StartState,
  load: (machine: PausedQemu) => Promise<Record<string, number>>,
): Promise<RunningQemu> {
  const startedAt = performance.now();
  const elapsedMs = (): number => Math.round(performance.now() - startedAt);
  const size = state.kind === 'restore' ? state.size : TEMPLATE_SIZE;
  const cgroup = await order.cgroups.make(order.vmId, size, base.accelerator === 'kvm');
  const launched = await launchQemu(
    jailArgv(
      { ...jailOf(base, order), memoryMib: size.memoryMib, cgroup },
      QEMU_PROGRAM,
      qemuArgv(startOf(base, order, state)),
    ),
    order.signal,
    order.diskKey === null ? null : passphraseOf(order.diskKey),
  );
  const launchedMs = elapsedMs();
  let recorded = Promise.resolve();
  try {
    const signal = AbortSignal.any([order.signal, launched.ended]);
    // Recorded while QEMU starts; nothing runs for the tenant before that completes.
    recorded = order.onStarted(launched.process);
    recorded.catch(() => undefined);
    const qmp = await openQmp(join(order.folder, VM_FILES.control), (event) => order.onEvent(event), { signal });
    const controlMs = elapsedMs();
    const run = async (onSent?: () => void): Promise<void> => {
      await recorded;
      await limitDisk(qmp, order.rates, signal);
      await qmp.command('cont', undefined, z.unknown(), { signal, onSent });
    };
    try {
      const times = await load({ process: launched.process, qmp, launched, signal, elapsedMs, recorded, run });
      return {
        process: launched.process,
        qmp,
        ended: launched.ended,
        times: { launchedMs, controlMs, ...times, runningMs: elapsedMs() },
      };
    } catch (error) {
      qmp.close();
      throw error;
    }
  } catch (error) {
    await recorded.catch(() => undefined);
    throw await reasonOf(error, launched);
  }
}

function jailOf({ template, image, accelerator }: RestoreBase, { slot, folder, diskGib, diskKey }: StartOrder) {
  return {
    namespacePath: slot.namespacePath,
    imageFolder: image.folder,
    template: { folder: template.folder, writable: false },
    vmFolder: folder,
    diskGib,
    kvm: accelerator === 'kvm',
    encrypted: diskKey !== null,
    diesWithParent: false,
  };
}

function startOf(
  { version, accelerator, cpuModel, image, boot }: RestoreBase,
  { vmId, slot, diskKey }: StartOrder,
  state: StartState,
) {
  const encrypted = diskKey !== null;
  const rootDisk = basename(image.rootPath);
  const always = { version, accelerator, cpuModel, rootDisk, uid: slot.uid, tap: slot.tap, name: vmId, encrypted };
  return state.kind === 'restore'
    ? { ...always, ...state, vcpu: state.size.vcpu }
    : { ...always, ...state, vcpu: VCPU_MAX, boot };
}
