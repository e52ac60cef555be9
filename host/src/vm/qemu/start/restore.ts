// Restores the template into a paused VM: streams device state, adds the devices that the spec has
// beyond the template, and resumes the vCPUs.
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { DriverError, type VmSize } from '../../driver.ts';
import { DEVICE_STATE_FD, VM_FILES } from '../machine/argv.ts';
import type { RestoreBase } from '../template/bases.ts';
import type { Template } from '../template/template.ts';
import { renewKernelSecrets } from '../template/kernel-secrets.ts';
import { writeOverlay } from '../machine/disk.ts';
import { moduleSizes, plugCpus, plugModules } from '../machine/hotplug.ts';
import { TEMPLATE_SIZE } from '../../machine-size.ts';
import { growDisk } from '../machine/resize.ts';
import { startQemu, type RunningQemu, type PausedQemu, type StartOrder } from './start.ts';

const LOAD_DEADLINE_MS = 20_000;
const LOAD_STEP_MS = 1;

const migration = z.object({ status: z.string().optional(), 'error-desc': z.string().max(4_096).optional() });

/** QEMU rejected the device state, and would again. */
export class DevicesRefused extends DriverError {
  override readonly name = 'DevicesRefused';
}

/**
 * Writes the VM's disk, the part of a restore that needs no slot. The folder belongs to root: QEMU
 * opens everything before it drops root.
 */
export async function prepareVmFolder(folder: string, templateId: string, diskKey: string | null): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await chmod(folder, 0o700);
  await writeOverlay(join(folder, VM_FILES.disk), TEMPLATE_SIZE.diskGib, templateId, diskKey);
}

/** Restores the template in a prepared folder, at this size. Rejects as {@link startQemu}. */
export async function restoreTemplate(base: RestoreBase, order: StartOrder, size: VmSize): Promise<RunningQemu> {
  return startQemu(base, order, { kind: 'restore', size, devices: { cpus: [], modules: [] } }, (machine) =>
    resumeTemplate(machine, base.template, size),
  );
}

/** Loads the template's devices, replaces its secrets, and resumes the vCPUs. */
export async function resumeTemplate(
  machine: PausedQemu,
  { deviceState, kernelSecrets }: Pick<Template, 'deviceState' | 'kernelSecrets'>,
  size: VmSize,
): Promise<{ loadedMs: number }> {
  await loadDevices(machine, deviceState);
  await renewKernelSecrets(machine, kernelSecrets);
  const loadedMs = machine.elapsedMs();
  await plugCpus(machine.qmp, size.vcpu - TEMPLATE_SIZE.vcpu, machine.signal);
  await plugModules(machine.qmp, moduleSizes(size.memoryMib - TEMPLATE_SIZE.memoryMib), machine.signal);
  await machine.run();
  // The file size limit was set for this disk at the start.
  if (size.diskGib > TEMPLATE_SIZE.diskGib) await growDisk(machine.qmp, size.diskGib, machine.signal);

  return { loadedMs };
}

/**
 * Rejects with {@link DevicesRefused} only if QEMU reports so; with DriverError at the deadline, or
 * as a QMP command does.
 * Streams through an inherited descriptor: a socket file would have to be created after QEMU became
 * the slot's user, who may not create files.
 */
export async function loadDevices({ qmp, launched, signal }: PausedQemu, deviceState: Buffer): Promise<void> {
  await qmp.command('migrate-incoming', { uri: `fd:${DEVICE_STATE_FD}` }, z.unknown(), { signal });
  launched.deviceState.end(deviceState);
  const deadline = performance.now() + LOAD_DEADLINE_MS;
  for (;;) {
    const seen = await qmp.command('query-migrate', undefined, migration, { signal });
    if (seen.status === 'completed') return;

    const how = seen['error-desc'] ?? seen.status ?? 'not begun';
    if (seen.status === 'failed') throw new DevicesRefused(`the device state was not loaded: ${how}`);

    if (performance.now() > deadline)
      throw new DriverError(`the device state was not loaded within ${LOAD_DEADLINE_MS / 1_000} s: ${how}`);

    await delay(LOAD_STEP_MS, undefined, { signal });
  }
}
