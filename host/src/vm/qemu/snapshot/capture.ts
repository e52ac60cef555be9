// Captures a paused VM: device state, changed pages and disk metadata. Owns the order of the steps,
// and resumes the VM if a step fails.
//
//   running -> stopped -> devices saved, disk closed -> pages copied -> all durable -> manifest
//                  \-------------------\---------------------\---------------\--> running
import { randomBytes } from 'node:crypto';
import { chmod, open, readdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { nullIf } from '@berth/os/errors.ts';
import { DriverError } from '../../driver.ts';
import { assertRuns, type ProcessIdentity } from '@berth/os/process-identity.ts';
import { flushFolder } from '@berth/os/durable-file.ts';
import { JAIL_PATHS, VM_FILES } from '../machine/argv.ts';
import { newMark, writeMark } from '../machine/disk.ts';
import type { Virtualization } from '../machine/machine.ts';
import type { RestoreBase } from '../template/bases.ts';
import { readPlugged } from '../machine/plugged.ts';
import { boundedMessageOf } from '../../host-error.ts';
import type { QmpSession } from '../machine/qmp.ts';
import { fileCipher, fileKey } from './encryption.ts';
import { DEVICES_MAX_BYTES, digest, diskMark, SNAPSHOT_FILES, writeManifest, type Manifest } from './manifest.ts';
import type { Pages } from './pages.ts';
import { findRamBlocks } from '../machine/ram-blocks.ts';

/** Limit for the guest's in-flight writes to reach the disk. */
const STOP_DEADLINE_MS = 60_000;
const SAVE_DEADLINE_MS = 60_000;
const RESUME_DEADLINE_MS = 10_000;

const runState = z.object({ status: z.string() });

interface CaptureOrder {
  vmId: string;
  qmp: QmpSession;
  process: ProcessIdentity;
  /** The VM's folder, bound into its jail. */
  folder: string;
  snapshotFolder: string;
  base: RestoreBase;
  /** Hash of the running QEMU's options, and its processor. */
  machineHash: string;
  virtualization: Virtualization;
  uid: number;
  /** Null for a snapshot in plain text. */
  diskKey: string | null;
  pages: Pages;
  signal: AbortSignal;
}

/** Milliseconds since the start at which each step completed. */
type CaptureTimes = Readonly<Record<'stoppedMs' | 'devicesMs' | 'pagesMs' | 'manifestMs' | 'copiedMib', number>>;

/**
 * Resolves with the VM permanently paused. Otherwise the VM resumes, the snapshot folder is empty,
 * and this rejects with {@link DriverError}, QmpError or the signal's reason.
 */
export async function capture(order: CaptureOrder): Promise<CaptureTimes> {
  const { qmp, signal } = order;
  const { status } = await qmp.command('query-status', undefined, runState, { signal });
  if (status === 'io-error')
    throw new DriverError("cannot capture the VM: it is paused because the host's disk is full");

  if (status !== 'running' && status !== 'paused')
    throw new DriverError(`cannot capture the VM while it is ${status.slice(0, 32)}`);

  const progress = { manifestBegun: false };
  try {
    return await captureStopped(order, progress);
  } catch (error) {
    await resumeAfterFailure(order, progress).catch((failure: Error) => {
      throw new AggregateError(
        [error, failure],
        `${boundedMessageOf(error)}; and the VM could not be resumed: ${failure.message}`,
        {
          cause: error,
        },
      );
    });
    throw error;
  }
}

async function captureStopped(order: CaptureOrder, progress: { manifestBegun: boolean }): Promise<CaptureTimes> {
  const { qmp, process, folder, snapshotFolder, base, diskKey, signal } = order;
  const startedAt = performance.now();
  const elapsedMs = (): number => Math.round(performance.now() - startedAt);
  await qmp.command('stop', undefined, z.unknown(), { signal, deadlineMs: STOP_DEADLINE_MS });
  const stoppedMs = elapsedMs();
  const devices = await readPlugged(qmp, signal);
  const salt = randomBytes(16).toString('hex');
  const plainState = await saveDevices(order);
  const state = diskKey === null ? plainState : fileCipher(fileKey(diskKey, salt, 'devices'), 0)(plainState);
  const devicesMs = elapsedMs();
  const disk = join(folder, VM_FILES.disk);
  // Copying finishes even if another step fails: a file in use cannot be removed.
  const copying = copyPages(order, devices.modules);
  const others = Promise.all([
    writeNew(join(snapshotFolder, SNAPSHOT_FILES.devices), state),
    markDisk(disk, base.template.templateId),
    flushFolder(dirname(snapshotFolder)),
  ]);
  others.catch(() => undefined);
  const memoryFile = await copying;
  await others;
  await flushFolder(snapshotFolder);
  const pagesMs = elapsedMs();
  const manifest: Manifest = {
    format: 2,
    vmId: order.vmId,
    capturedAt: new Date().toISOString(),
    templateId: base.template.templateId,
    imageId: base.template.facts.imageId,
    qemuVersion: base.version.text,
    ...(diskKey === null ? {} : { salt }),
    machineHash: order.machineHash,
    virtualization: order.virtualization,
    devices,
    memoryFile,
    devicesFile: { sizeBytes: state.length, sha256: digest(state) },
    disk: await diskMark(disk),
  };
  signal.throwIfAborted();
  progress.manifestBegun = true;
  await writeManifest(snapshotFolder, manifest, diskKey);
  return {
    stoppedMs,
    devicesMs,
    pagesMs,
    manifestMs: elapsedMs(),
    copiedMib: Math.round(memoryFile.dataBytes / 2 ** 20),
  };

  async function copyPages({ pages }: CaptureOrder, modules: Manifest['devices']['modules']) {
    const blocks = await findRamBlocks(qmp, process, modules, signal);
    const key = diskKey === null ? null : fileKey(diskKey, salt, 'memory');
    return pages.capture(
      { kind: 'capture', process, blocks, path: join(snapshotFolder, SNAPSHOT_FILES.memory), key },
      signal,
    );
  }
}

/**
 * QEMU writes the file as the slot's user, who may not create files, so create it first; for an
 * encrypted VM in the memory file system of its jail. Since the VM is paused, QEMU closes the disk
 * for writing, and reopens it on resume.
 */
async function saveDevices({ qmp, process, folder, uid, diskKey, signal }: CaptureOrder): Promise<Buffer> {
  const jailFolder = diskKey === null ? JAIL_PATHS.vm : JAIL_PATHS.memory;
  const path = join(diskKey === null ? folder : `/proc/${process.pid}/root${jailFolder}`, VM_FILES.devices);
  await rm(path, { force: true });
  const file = await open(path, 'wx+', 0o600);
  try {
    // The open file belongs to the recorded process even if its pid is reused.
    await assertRuns(process);
    await file.chown(uid, uid);
    // QEMU's user must reach the folder. Others cannot: its parent is closed.
    await chmod(folder, 0o711);
    const call = { signal, deadlineMs: SAVE_DEADLINE_MS };
    await qmp.command('xen-save-devices-state', { filename: `${jailFolder}/${VM_FILES.devices}` }, z.unknown(), call);
    const { size } = await file.stat();
    if (size === 0 || size > DEVICES_MAX_BYTES)
      throw new DriverError(`QEMU wrote ${size} bytes as the state of its devices`);

    const state = Buffer.alloc(size);
    for (let done = 0; done < size;) {
      const { bytesRead } = await file.read(state, done, size - done, done);
      if (bytesRead === 0) throw new DriverError('the device state shrank while it was read');

      done += bytesRead;
    }
    return state;
  } finally {
    await file.close();
    await rm(path, { force: true });
    await closeFolder(folder);
  }
}

/** Restores the mode from before devices were saved. */
export async function closeFolder(folder: string): Promise<void> {
  await rm(join(folder, VM_FILES.devices), { force: true });
  await chmod(folder, 0o700);
}

/** Never with a manifest in place: it would describe a VM that has run since. */
async function resumeAfterFailure(
  { qmp, snapshotFolder }: CaptureOrder,
  { manifestBegun }: { manifestBegun: boolean },
): Promise<void> {
  if (manifestBegun) {
    await rm(join(snapshotFolder, SNAPSHOT_FILES.manifest), { force: true });
    await flushFolder(snapshotFolder);
  }
  await qmp.command('cont', undefined, z.unknown(), { signal: AbortSignal.timeout(RESUME_DEADLINE_MS) });
  for (const name of (await readdir(snapshotFolder).catch(nullIf('ENOENT'))) ?? [])
    await rm(join(snapshotFolder, name), { force: true });
}

async function writeNew(path: string, content: Buffer): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Makes the disk durable, with a mark that only this snapshot names. QEMU has it read-only. */
async function markDisk(path: string, templateId: string): Promise<void> {
  await writeMark(path, templateId, newMark());
  await using file = await open(path, 'r');
  await file.sync();
}
