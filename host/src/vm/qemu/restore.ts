// Brings a stopped copy of the template to life: starts QEMU in its jail, streams the devices' state, plugs in what the spec has beyond the template,
// lets the vCPUs run. Owns the order of these steps; slots, records and ends are the driver's.
//
//   launched -> control socket open -> devices loaded -> plugged -> running
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { VmSpec } from '@berth/protocol/host.ts';
import { z } from 'zod';
import { DriverError, type VmProcess } from '../driver.ts';
import { DEVICE_STATE_FD, qemuArgv, VM_FILES } from './argv.ts';
import { writeOverlay } from './disk.ts';
import { plugIn } from './hotplug.ts';
import { jailArgv } from './jail.ts';
import { launchQemu, reasonOf, type LaunchedQemu } from './launch.ts';
import { TEMPLATE_SIZE, type Accelerator } from './machine.ts';
import type { Slot } from './network/slot.ts';
import { openQmp, type QmpEvent, type QmpSession } from './qmp.ts';
import { QEMU_PROGRAM, type QemuVersion } from './qemu-version.ts';
import type { Template } from './template.ts';

const LOAD_DEADLINE_MS = 20_000;
const LOAD_STEP_MS = 1;

/** What every restore on this machine has in common. */
export interface RestoreBase {
  template: Template;
  imageFolder: string;
  /** File name of the base root in the image's folder. */
  rootDisk: string;
  accelerator: Accelerator;
  version: QemuVersion;
  hostVendor: string;
}

export interface RestoreOrder {
  vmId: string;
  /** The VM's folder for its disk and control socket; exists. */
  folder: string;
  spec: VmSpec;
  slot: Slot;
  /** Called with the process as soon as there is one. */
  onStarted(process: VmProcess): Promise<void>;
  onEvent(event: QmpEvent): void;
  signal: AbortSignal;
}

/** Milliseconds since the start of the restore at which each step was done. */
export interface RestoreTimes {
  launchedMs: number;
  controlMs: number;
  loadedMs: number;
  runningMs: number;
}

export interface RestoredMachine {
  process: VmProcess;
  qmp: QmpSession;
  /** Aborts, with QEMU's last words, when it ends. */
  ended: AbortSignal;
  times: RestoreTimes;
}

const migration = z.object({ status: z.string().optional(), 'error-desc': z.string().optional() });

/** Writes the VM's disk: what of a restore needs no slot. The folder stays root's: QEMU opens everything before it gives up being root. */
export async function prepareVmFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await chmod(folder, 0o700);
  await writeOverlay(join(folder, VM_FILES.disk), TEMPLATE_SIZE.diskGib);
}

/** Restores the template in a prepared folder. Rejects with {@link DriverError}, QmpError or the signal's reason; the caller ends what runs then. */
export async function restore(base: RestoreBase, order: RestoreOrder): Promise<RestoredMachine> {
  const startedAt = performance.now();
  const elapsed = (): number => Math.round(performance.now() - startedAt);
  const launched = await launchQemu(jailArgv(jailOf(base, order), QEMU_PROGRAM, qemuArgv(startOf(base, order))), order.signal);
  try {
    return await bringToLife(base, order, launched, elapsed);
  } catch (error) {
    throw await reasonOf(error, launched);
  }
}

async function bringToLife(
  base: RestoreBase,
  order: RestoreOrder,
  launched: LaunchedQemu,
  elapsed: () => number,
): Promise<RestoredMachine> {
  const launchedMs = elapsed();
  const signal = AbortSignal.any([order.signal, launched.ended]);
  // Recorded while QEMU starts: nothing of it runs for the tenant before that is done.
  const recorded = order.onStarted(launched.process);
  recorded.catch(() => undefined);
  const qmp = await openQmp(join(order.folder, VM_FILES.control), (event) => order.onEvent(event), { signal });
  try {
    const controlMs = elapsed();
    await loadDevices(qmp, launched, base.template.deviceState, signal);
    const loadedMs = elapsed();
    await plugIn(qmp, order.spec, signal);
    await recorded;
    await qmp.command('cont', undefined, z.unknown(), { signal });
    return { process: launched.process, qmp, ended: launched.ended, times: { launchedMs, controlMs, loadedMs, runningMs: elapsed() } };
  } catch (error) {
    qmp.close();
    throw error;
  }
}

/** Through a descriptor QEMU inherited: a socket file would have to be made after QEMU became the slot's user, who may write nowhere. */
async function loadDevices(qmp: QmpSession, launched: LaunchedQemu, deviceState: Buffer, signal: AbortSignal): Promise<void> {
  await qmp.command('migrate-incoming', { uri: `fd:${DEVICE_STATE_FD}` }, z.unknown(), { signal });
  launched.deviceState.end(deviceState);
  const deadline = performance.now() + LOAD_DEADLINE_MS;
  for (;;) {
    const seen = await qmp.command('query-migrate', undefined, migration, { signal });
    if (seen.status === 'completed') {
      return;
    }
    if (seen.status === 'failed' || performance.now() > deadline) {
      throw new DriverError(`the devices' state was not loaded: ${seen['error-desc'] ?? seen.status ?? 'not begun'}`);
    }
    await delay(LOAD_STEP_MS, undefined, { signal });
  }
}

function jailOf({ template, imageFolder, accelerator }: RestoreBase, { slot, folder, spec }: RestoreOrder) {
  return {
    namespacePath: slot.namespacePath,
    imageFolder,
    template: { folder: template.folder, writable: false },
    vmFolder: folder,
    diskGib: spec.diskGib,
    kvm: accelerator === 'kvm',
    diesWithParent: false,
  };
}

function startOf({ version, accelerator, hostVendor, rootDisk }: RestoreBase, { vmId, slot, spec }: RestoreOrder) {
  return {
    kind: 'restore' as const,
    version,
    accelerator,
    hostVendor,
    rootDisk,
    uid: slot.uid,
    tap: slot.tap,
    name: vmId,
    vcpu: spec.vcpu,
  };
}
