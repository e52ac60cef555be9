// Wakes a VM from its snapshot: starts QEMU with the same devices, loads pages, then device state,
// and resumes once the snapshot is spent. The order matters: devices read guest memory while their
// state is loaded.
//
//   verified -> started -> pages in memory, their hash right -> devices loaded -> snapshot spent -> running
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode } from '@berth/os/errors.ts';
import { boundedMessageOf } from '../../host-error.ts';
import { DriverError, NeverContinued, SnapshotUnusable } from '../../driver.ts';
import { VM_FILES } from '../machine/argv.ts';
import type { Bases, RestoreBase } from '../template/bases.ts';
import { isFault } from '../process/death.ts';
import { QemuEnded } from '../process/launch.ts';
import { machineHash } from '../machine/machine.ts';
import { sizeOf } from '../machine/plugged.ts';
import { DevicesRefused, loadDevices } from '../start/restore.ts';
import { startQemu, type RunningQemu, type StartOrder } from '../start/start.ts';
import { fileCipher, fileKey } from './encryption.ts';
import { digest, diskMark, isSameDisk, SNAPSHOT_FILES, type Manifest } from './manifest.ts';
import type { PatchTarget } from './pages-job.ts';
import type { Pages } from './pages.ts';
import { findRamBlocks } from '../machine/ram-blocks.ts';

/** Exit code of a QEMU that rejects the device state. */
const REFUSAL_CODE = 1;

/**
 * A snapshot whose manifest, devices and disk match the capture. Its pages are verified while they
 * are loaded.
 */
interface VerifiedSnapshot {
  folder: string;
  manifest: Manifest;
  deviceState: Buffer;
  /** Null for a file in plain text. */
  memoryKey: Uint8Array | null;
}

/** Rejects with {@link SnapshotUnusable}. */
export async function verifySnapshot(
  folder: string,
  manifest: Manifest,
  vmId: string,
  vmFolder: string,
  diskKey: string | null,
): Promise<VerifiedSnapshot> {
  if (manifest.vmId !== vmId) throw new SnapshotUnusable('the snapshot belongs to another VM');

  const mark = await diskMark(join(vmFolder, VM_FILES.disk)).catch(
    missingIsUnusable('the disk of the snapshot is missing'),
  );
  if (!isSameDisk(manifest.disk, mark)) throw new SnapshotUnusable('the disk was changed since the snapshot was taken');

  const path = join(folder, SNAPSHOT_FILES.devices);
  const gone = missingIsUnusable('the device state is missing');
  const sizeMatches = (await stat(path).catch(gone)).size === manifest.devicesFile.sizeBytes;
  const deviceState = sizeMatches ? await readFile(path).catch(gone) : null;
  if (deviceState === null || digest(deviceState) !== manifest.devicesFile.sha256)
    throw new SnapshotUnusable('the device state differs from the captured one');

  const { salt } = manifest;
  if (diskKey === null || salt === undefined) return { folder, manifest, deviceState, memoryKey: null };

  const decrypt = fileCipher(fileKey(diskKey, salt, 'devices'), 0);
  return { folder, manifest, deviceState: decrypt(deviceState), memoryKey: fileKey(diskKey, salt, 'memory') };
}

/**
 * The base with the processor of the snapshot. Throws {@link SnapshotUnusable} if this host lacks
 * it, or if the snapshot was made with different VM options.
 */
export function baseFor(manifest: Manifest, bases: Bases, base: RestoreBase): RestoreBase {
  const { accelerator, cpuModel } = manifest.virtualization ?? base;
  if (!bases.canRun({ accelerator, cpuModel })) {
    const needs = accelerator === 'kvm' ? `the processor ${cpuModel} under KVM` : accelerator.toUpperCase();
    throw new SnapshotUnusable(`the snapshot needs ${needs}, which this host lacks`);
  }
  if (machineHash({ accelerator, cpuModel }) !== manifest.machineHash)
    throw new SnapshotUnusable("the snapshot's devices differ from those of current VMs");

  return { ...base, accelerator, cpuModel };
}

/**
 * Rejects with {@link SnapshotUnusable} if pages or devices differ from the capture, with {@link
 * NeverContinued} if the VM was not resumed after `beforeContinue`, otherwise as {@link
 * startQemu}.
 */
export async function wakeSnapshot(
  base: RestoreBase,
  order: StartOrder,
  { folder, manifest, deviceState, memoryKey: key }: VerifiedSnapshot,
  pages: Pages,
  beforeContinue: () => Promise<void>,
): Promise<RunningQemu> {
  const { devices } = manifest;
  let loading = false;
  let spent = false;
  let told = false;
  const over = new AbortController();
  const target = Promise.withResolvers<PatchTarget>();
  // Read and verify pages while QEMU starts.
  const path = join(folder, SNAPSHOT_FILES.memory);
  const job = { kind: 'patch', path, memory: manifest.memoryFile, key } as const;
  const patching = pages.patch(job, target.promise, AbortSignal.any([order.signal, over.signal]));
  patching.catch(() => undefined);
  try {
    return await startQemu(base, order, { kind: 'restore', size: sizeOf(devices), devices }, async (machine) => {
      const { process, qmp, signal, elapsedMs } = machine;
      target.resolve({ process, blocks: await findRamBlocks(qmp, process, devices.modules, signal) });
      await patching;
      const patchedMs = elapsedMs();
      loading = true;
      await loadDevices(machine, deviceState);
      loading = false;
      const loadedMs = elapsedMs();
      // Spend the snapshot only for a VM on record: an unrecorded VM would never run.
      await machine.recorded;
      await beforeContinue();
      spent = true;
      await machine.run(() => (told = true));
      return { patchedMs, loadedMs };
    });
  } catch (error) {
    if (error instanceof DevicesRefused || (loading && isInputFault(error)))
      throw new SnapshotUnusable(error.message, { cause: error });

    throw spent && !told ? new NeverContinued(boundedMessageOf(error), { cause: error }) : error;
  } finally {
    // After a failed start nothing uses the snapshot's files any longer.
    over.abort(new DriverError('the VM was not started'));
    await patching.catch(() => undefined);
  }
}

/**
 * True if QEMU exited because of its input. A QEMU killed from outside (host shutdown, out of
 * memory), or whose exit was not observed, would have loaded it.
 */
function isInputFault(error: unknown): error is QemuEnded {
  return error instanceof QemuEnded && (error.exitCode === REFUSAL_CODE || isFault(error.exitCode));
}

function missingIsUnusable(message: string): (error: NodeJS.ErrnoException) => never {
  return (error) => {
    throw hasCode(error, 'ENOENT') ? new SnapshotUnusable(message, { cause: error }) : error;
  };
}
