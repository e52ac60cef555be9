// Boots an image once, in a network slot and a jail, with memory and disk in files: for the
// accelerator's probe and for a template. Owns the start, the wait for the guest daemon and the end
// of the VM; callers use it in between.
import { chown, mkdir, open } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Image } from '@berth/image/image-folder.ts';
import { GUEST_PORT } from '@berth/protocol/guest.ts';
import { z } from 'zod';
import { DIRECT_GUESTS } from '../../../../guest/client.ts';
import { DriverError, type GuestEndpoint } from '../../../driver.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { processExited } from '@berth/os/process-identity.ts';
import { qemuArgv, TEMPLATE_FILES, VM_FILES } from '../../machine/argv.ts';
import { bootFilesOf } from '../bases.ts';
import { writeOverlay } from '../../machine/disk.ts';
import { bootToGuest } from '../../start/boot.ts';
import { unplugAllCpus } from '../../machine/hotplug.ts';
import { jailArgv } from '../../process/jail.ts';
import { launchQemu, reasonOf, type LaunchedQemu } from '../../process/launch.ts';
import { TEMPLATE_SIZE } from '../../../machine-size.ts';
import type { Virtualization } from '../../machine/machine.ts';
import type { Network, Slot } from '../../../../network/slots/slot.ts';
import { openQmp, type QmpSession } from '../../machine/qmp.ts';
import { QEMU_PROGRAM, type QemuVersion } from '../../machine/qemu-version.ts';
import { endSlotProcesses } from '../../../../network/slots/slot-processes.ts';

const QUIT_DEADLINE_MS = 30_000;
const UNPLUG_DEADLINE_MS = 60_000;

export interface BootOrder {
  image: Image;
  virtualization: Virtualization;
  version: QemuVersion;
  network: Network;
  /** A folder created here, for memory, disk and sockets. */
  folder: string;
  /** Deadline of the guest daemon's first response. */
  deadlineMs: number;
}

/** A VM whose guest daemon responded. */
export interface BootedVm {
  qmp: QmpSession;
  /** Pid 1 of the VM's pid namespace; its latest child is QEMU. */
  process: ProcessIdentity;
  endpoint: GuestEndpoint;
  /** Holds the files named in TEMPLATE_FILES. */
  templateFolder: string;
  /** Aborts with QEMU's last messages when it exits. */
  signal: AbortSignal;
  /** Quits QEMU in order: memory and disk are then written to the kernel. */
  quit: () => Promise<void>;
}

/**
 * Boots, passes the VM to `use`, and leaves no process and no slot behind. Rejects with {@link
 * DriverError} that names the step reached.
 */
export async function withBootedVm<T>(
  order: BootOrder,
  signal: AbortSignal,
  use: (machine: BootedVm) => Promise<T>,
): Promise<T> {
  const slot = await order.network.claim(`template-${basename(order.folder)}`, signal);
  try {
    const templateFolder = await makeFiles(order, slot);
    const launched = await launchQemu(
      jailArgv(jailOf(order, slot, templateFolder), QEMU_PROGRAM, qemuArgv(startOf(order, slot))),
      signal,
    );
    return await workWith(order, slot, templateFolder, launched, AbortSignal.any([signal, launched.ended]), use).catch(
      async (error: unknown) => {
        throw await reasonOf(error, launched);
      },
    );
  } finally {
    await endSlotProcesses(slot);
    await order.network.release(slot.number);
  }
}

async function workWith<T>(
  order: BootOrder,
  slot: Slot,
  templateFolder: string,
  { process }: LaunchedQemu,
  signal: AbortSignal,
  use: (machine: BootedVm) => Promise<T>,
): Promise<T> {
  const qmp = await openQmp(join(order.folder, 'vm', VM_FILES.control), () => undefined, { signal });
  try {
    const endpoint = { address: slot.address, port: GUEST_PORT };
    const run = async (): Promise<void> => void (await qmp.command('cont', undefined, z.unknown(), { signal }));
    await bootToGuest(
      {
        qmp,
        endpoint,
        guests: DIRECT_GUESTS,
        accelerator: order.virtualization.accelerator,
        deadlineMs: order.deadlineMs,
        run,
      },
      signal,
    );
    await unplugAllCpus(qmp, UNPLUG_DEADLINE_MS, signal);
    return await use({ qmp, process, endpoint, templateFolder, signal, quit: () => quitQemu(qmp, process) });
  } finally {
    qmp.close();
  }
}

/**
 * QEMU writes the device state after it dropped root, so its user owns the folder until it exits.
 */
async function makeFiles({ folder, image }: BootOrder, slot: Slot): Promise<string> {
  const templateFolder = join(folder, 'template');
  await mkdir(join(folder, 'vm'), { recursive: true, mode: 0o700 });
  await mkdir(templateFolder, { mode: 0o700 });
  await chown(templateFolder, slot.uid, slot.uid);
  await writeOverlay(join(templateFolder, TEMPLATE_FILES.disk), TEMPLATE_SIZE.diskGib, image.imageId);
  const memory = await open(join(templateFolder, TEMPLATE_FILES.memory), 'wx', 0o600);
  try {
    await memory.truncate(TEMPLATE_SIZE.memoryMib * 2 ** 20);
  } finally {
    await memory.close();
  }
  return templateFolder;
}

function jailOf(order: BootOrder, slot: Slot, templateFolder: string) {
  return {
    namespacePath: slot.namespacePath,
    imageFolder: order.image.folder,
    template: { folder: templateFolder, writable: true },
    vmFolder: join(order.folder, 'vm'),
    memoryMib: TEMPLATE_SIZE.memoryMib,
    diskGib: TEMPLATE_SIZE.diskGib,
    kvm: order.virtualization.accelerator === 'kvm',
    diesWithParent: true,
  };
}

function startOf({ image, virtualization, version }: BootOrder, slot: Slot) {
  return {
    kind: 'boot' as const,
    version,
    ...virtualization,
    uid: slot.uid,
    tap: slot.tap,
    rootDisk: basename(image.rootPath),
    name: 'berth-template',
    boot: bootFilesOf(image, virtualization.accelerator, null),
  };
}

async function quitQemu(qmp: QmpSession, process: ProcessIdentity): Promise<void> {
  const late = AbortSignal.timeout(QUIT_DEADLINE_MS);
  await qmp.command('quit', undefined, z.unknown(), { signal: late });
  await processExited(process, late);
  if (late.aborted) throw new DriverError(`QEMU did not exit within ${QUIT_DEADLINE_MS / 1_000} s`);
}
