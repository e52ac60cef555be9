// QEMU's command line, from plain values: the machine (machine.ts) with the files, sockets and user
// of one start. Pure. Paths are those inside the jail (jail.ts). Carries no secret: every user of
// the host can read it.
import { TEMPLATE_SIZE } from '../../machine-size.ts';
import { acceleratorOptions, cpuModel, machineOptions, type Accelerator } from './machine.ts';
import { cpuId, moduleMemory, vcpuThread, type Plugged } from './plugged.ts';
import type { QemuVersion } from './qemu-version.ts';

/** Where the jail puts things. */
export const JAIL_PATHS = { image: '/image', template: '/template', vm: '/vm' } as const;

/** Files of the image, as named in its folder. */
export interface BootFiles {
  kernel: string;
  initramfs: string;
  commandLine: string;
}

/** Files of a template's folder, and of a VM's. */
export const TEMPLATE_FILES = { memory: 'memory', devices: 'devices', disk: 'disk.qcow2' } as const;
/**
 * `devices` is there only while a machine that stands still writes the state of its devices to it.
 */
export const VM_FILES = { disk: 'disk.qcow2', control: 'qmp', devices: 'devices' } as const;

interface Start {
  version: QemuVersion;
  accelerator: Accelerator;
  hostVendor: string;
  uid: number;
  tap: string;
  /** File name of the base root in the image's folder. */
  rootDisk: string;
  /** Shows in the process list and in QEMU's messages. */
  name: string;
}

/** The template's one boot: memory and disk are written in place. */
export interface BootStart extends Start {
  kind: 'boot';
  boot: BootFiles;
}

/** A VM: memory and disks of the template are read-only, `/vm` holds the overlay. */
interface VmStart extends Start {
  /** vCPUs it will have after hotplug. */
  vcpu: number;
}

/**
 * Waits for the state of devices: the template's, or that of the machine itself when it went to
 * sleep.
 */
export interface RestoreStart extends VmStart {
  kind: 'restore';
  /** What it had when that state was written, beyond the template's. */
  devices: Pick<Plugged, 'cpus' | 'modules'>;
}

/**
 * Boots the disk of a VM. What its memory holds at first is the template's, so that what it has
 * changed can be told at its next sleep.
 */
export interface RebootStart extends VmStart {
  kind: 'reboot';
  boot: BootFiles;
}

/** The number of the descriptor that a restore reads the device state from. */
export const DEVICE_STATE_FD = 4;

/**
 * Console output kept inside QEMU; read with `ringbuf-read`. A power of two, as the ring buffer
 * wants it.
 */
export const CONSOLE_BYTES = 65_536;

/** Everything after the program's name. */
export function qemuArgv(start: BootStart | RestoreStart | RebootStart): string[] {
  return [
    ...['-name', start.name],
    ...acceleratorOptions(start.accelerator, start.kind === 'boot' ? 'boot' : { vcpu: start.vcpu }),
    ...machineOptions(start.accelerator, start.hostVendor),
    ...['-object', memoryBackend(start)],
    ...disks(start).flatMap((disk) => ['-blockdev', JSON.stringify(disk)]),
    ...['-netdev', `tap,id=net0,ifname=${start.tap},script=no,downscript=no,vhost=off`],
    ...['-chardev', `ringbuf,id=console,size=${CONSOLE_BYTES}`],
    ...['-chardev', `socket,id=control,path=${JAIL_PATHS.vm}/${VM_FILES.control},server=on,wait=off`],
    ...['-mon', 'chardev=control,mode=control'],
    ...(start.kind === 'restore' ? restoreOptions(start) : bootOptions(start.boot)),
    // Stands still instead of ending, until the daemon has read why (control.ts).
    ...(start.kind === 'boot' ? [] : ['-action', 'shutdown=pause']),
    ...confinement(start),
  ];
}

/**
 * A private copy-on-write mapping of a file opened read-only (`readonly=on` with a writable mapping
 * needs `rom=off`, QEMU 8.2 and later).
 */
function memoryBackend({ kind }: { kind: 'boot' | 'restore' | 'reboot' }): string {
  const file = `memory-backend-file,id=mem,size=${TEMPLATE_SIZE.memoryMib}M,mem-path=${JAIL_PATHS.template}/${TEMPLATE_FILES.memory}`;
  return `${file},${kind === 'boot' ? 'share=on' : 'share=off,readonly=on,rom=off'}`;
}

/**
 * The chain from the base up; every layer with its format, nothing is probed and no name inside an
 * image is followed.
 */
function disks(start: BootStart | RestoreStart | RebootStart): object[] {
  const template = `${JAIL_PATHS.template}/${TEMPLATE_FILES.disk}`;
  const base = [
    readOnlyFile('base-file', `${JAIL_PATHS.image}/${start.rootDisk}`),
    { driver: 'raw', 'node-name': 'base', file: 'base-file', 'read-only': true },
  ];
  if (start.kind === 'boot') return [...base, ...writableQcow2(template, 'base')];

  return [
    ...base,
    readOnlyFile('template-file', template),
    { driver: 'qcow2', 'node-name': 'template', file: 'template-file', backing: 'base', 'read-only': true },
    ...writableQcow2(`${JAIL_PATHS.vm}/${VM_FILES.disk}`, 'template'),
  ];
}

/** Shared by all VMs: nobody may hold a lock on it. */
function readOnlyFile(name: string, path: string): object {
  return {
    driver: 'file',
    'node-name': name,
    filename: path,
    'read-only': true,
    'auto-read-only': false,
    locking: 'off',
  };
}

function writableQcow2(path: string, backing: string): object[] {
  return [
    { driver: 'file', 'node-name': 'disk-file', filename: path, discard: 'unmap', locking: 'off' },
    { driver: 'qcow2', 'node-name': 'disk', file: 'disk-file', backing, discard: 'unmap' },
  ];
}

/**
 * `send-configuration=off`: the stream of `xen-save-devices-state` has no configuration section,
 * and the load would wait for one. `-S`: the stream says that the machine ran, and without this it
 * would run as soon as it is loaded.
 */
function restoreOptions({ devices, accelerator, hostVendor }: RestoreStart): string[] {
  const [model] = cpuModel(accelerator, hostVendor).split(',');
  const cpus = devices.cpus.map((number) => ({
    driver: `${model}-x86_64-cpu`,
    id: cpuId(number),
    'socket-id': 0,
    'core-id': number,
    'thread-id': 0,
  }));
  const modules = devices.modules.map(({ id, address, slot }) => ({
    driver: 'pc-dimm',
    id,
    memdev: moduleMemory(id),
    addr: address,
    slot,
  }));
  return [
    ...['-S', '-incoming', 'defer', '-global', 'migration.send-configuration=off'],
    ...devices.modules.flatMap(({ id, sizeMib }) => [
      '-object',
      `memory-backend-ram,id=${moduleMemory(id)},size=${sizeMib}M`,
    ]),
    ...(accelerator === 'tcg' ? cpus : []).flatMap((_cpu, at) => ['-object', JSON.stringify(vcpuThread(at + 1))]),
    ...[...modules, ...cpus].flatMap((device) => ['-device', JSON.stringify(device)]),
  ];
}

function bootOptions(boot: BootFiles): string[] {
  const { image } = JAIL_PATHS;
  // Stopped at first: vCPUs may have to be added before the firmware looks for them.
  return [
    '-S',
    '-kernel',
    `${image}/${boot.kernel}`,
    '-initrd',
    `${image}/${boot.initramfs}`,
    '-append',
    boot.commandLine,
  ];
}

/**
 * `elevateprivileges=allow`: with "deny" QEMU could not give up being root itself; the jail has set
 * no_new_privs by then.
 */
function confinement(start: Start): string[] {
  const user = `${start.uid}:${start.uid}`;
  return [
    ...['-sandbox', 'on,obsolete=deny,elevateprivileges=allow,spawn=deny,resourcecontrol=deny'],
    ...(start.version.runWithUser ? ['-run-with', `user=${user}`] : ['-runas', user]),
  ];
}
