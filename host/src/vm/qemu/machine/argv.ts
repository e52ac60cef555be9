// Builds QEMU's command line from plain values: the VM's hardware (machine.ts) plus the files,
// sockets and user of one start. Pure. Paths are inside the jail (jail.ts). Contains no secret:
// every user of the host can read it.
import { CONSOLE_BYTES } from '@berth/protocol/calls/vms.ts';
import { TEMPLATE_SIZE } from '../../machine-size.ts';
import { acceleratorOptions, machineOptions, type Virtualization } from './machine.ts';
import { cpuId, moduleMemory, vcpuThread, type Plugged } from './plugged.ts';
import type { QemuVersion } from './qemu-version.ts';

/** Mount points inside the jail. */
export const JAIL_PATHS = { image: '/image', template: '/template', vm: '/vm', memory: '/memory' } as const;
/** File in the jail with the passphrase of the disk, readable for root only and on no disk. */
export const PASSPHRASE_PATH = '/passphrase';

/** Files of the image, by their names in its folder. */
export interface BootFiles {
  kernel: string;
  initramfs: string;
  commandLine: string;
}

/** Files of a template's folder and of a VM's folder. */
export const TEMPLATE_FILES = { memory: 'memory', devices: 'devices', disk: 'disk.qcow2' } as const;
/** `devices` exists only while a paused VM writes its device state. */
export const VM_FILES = { disk: 'disk.qcow2', control: 'qmp', devices: 'devices' } as const;

interface Start extends Virtualization {
  version: QemuVersion;
  uid: number;
  tap: string;
  /** File name of the base root disk in the image's folder. */
  rootDisk: string;
  /** Shown in the process list and in QEMU's messages. */
  name: string;
  /** The VM's disk is encrypted; its passphrase is in {@link PASSPHRASE_PATH}. */
  encrypted?: boolean;
}

/** The single boot of a template: memory and disk are written in place. */
export interface BootStart extends Start {
  kind: 'boot';
  boot: BootFiles;
}

/** A VM: the template's memory and disks are read-only; `/vm` holds the overlay. */
interface VmStart extends Start {
  /** vCPUs after hot-plug. */
  vcpu: number;
}

/** Start that waits for device state: the template's, or the VM's own after a sleep. */
export interface RestoreStart extends VmStart {
  kind: 'restore';
  /** Devices beyond the template's at the time the state was saved. */
  devices: Pick<Plugged, 'cpus' | 'modules'>;
}

/**
 * Boot of a VM's disk. Its memory maps the template's, so that the next sleep can find the changed
 * pages.
 */
export interface RebootStart extends VmStart {
  kind: 'reboot';
  boot: BootFiles;
}

/** File descriptor from which a restore reads the device state. */
export const DEVICE_STATE_FD = 4;

/** All arguments after the program name. */
export function qemuArgv(start: BootStart | RestoreStart | RebootStart): string[] {
  return [
    // Threads named by their work: the CPU time of vCPUs is the guest's.
    ...['-name', `${start.name},debug-threads=on`],
    ...acceleratorOptions(start.accelerator, start.kind === 'boot' ? 'boot' : { vcpu: start.vcpu }),
    ...machineOptions(start.accelerator === 'kvm' ? `${start.cpuModel},enforce` : start.cpuModel),
    ...['-object', memoryBackend(start)],
    ...(start.encrypted === true ? ['-object', `secret,id=passphrase,file=${PASSPHRASE_PATH}`] : []),
    ...disks(start).flatMap((disk) => ['-blockdev', JSON.stringify(disk)]),
    ...['-netdev', `tap,id=net0,ifname=${start.tap},script=no,downscript=no,vhost=off`],
    // The guest's console: its last bytes, in QEMU's memory alone. The size must be a power of two.
    ...['-chardev', `ringbuf,id=console,size=${CONSOLE_BYTES}`],
    ...['-chardev', `socket,id=control,path=${JAIL_PATHS.vm}/${VM_FILES.control},server=on,wait=off`],
    ...['-mon', 'chardev=control,mode=control'],
    ...(start.kind === 'restore' ? restoreOptions(start) : bootOptions(start.boot)),
    // Pause instead of exiting, until the daemon has read the reason (control.ts).
    ...(start.kind === 'boot' ? [] : ['-action', 'shutdown=pause']),
    ...confinement(start),
  ];
}

/**
 * A private copy-on-write mapping of a file opened read-only. `readonly=on` with a writable mapping
 * requires `rom=off` (QEMU 8.2 and later).
 */
function memoryBackend({ kind }: { kind: 'boot' | 'restore' | 'reboot' }): string {
  const file =
    `memory-backend-file,id=mem,size=${TEMPLATE_SIZE.memoryMib}M,` +
    `mem-path=${JAIL_PATHS.template}/${TEMPLATE_FILES.memory}`;
  return `${file},${kind === 'boot' ? 'share=on' : 'share=off,readonly=on,rom=off'}`;
}

/**
 * The backing chain from the base up. Every layer states its format: QEMU probes nothing and
 * follows no name inside an image.
 */
function disks(start: BootStart | RestoreStart | RebootStart): object[] {
  const template = `${JAIL_PATHS.template}/${TEMPLATE_FILES.disk}`;
  const base = [
    readOnlyFile('base-file', `${JAIL_PATHS.image}/${start.rootDisk}`),
    { driver: 'raw', 'node-name': 'base', file: 'base-file', 'read-only': true },
  ];
  if (start.kind === 'boot') return [...base, ...writableQcow2(template, 'base', false)];

  return [
    ...base,
    readOnlyFile('template-file', template),
    { driver: 'qcow2', 'node-name': 'template', file: 'template-file', backing: 'base', 'read-only': true },
    ...writableQcow2(`${JAIL_PATHS.vm}/${VM_FILES.disk}`, 'template', start.encrypted === true),
  ];
}

/** Shared by all VMs, so without a lock. */
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

function writableQcow2(path: string, backing: string, encrypted: boolean): object[] {
  const encrypt = encrypted ? { format: 'luks', 'key-secret': 'passphrase' } : undefined;
  return [
    { driver: 'file', 'node-name': 'disk-file', filename: path, discard: 'unmap', locking: 'off' },
    { driver: 'qcow2', 'node-name': 'disk', file: 'disk-file', backing, discard: 'unmap', encrypt },
  ];
}

/**
 * `send-configuration=off`: the stream of `xen-save-devices-state` lacks a configuration section,
 * for which the load would wait. `-S`: the stream records a running VM, which would otherwise
 * resume right after the load.
 */
function restoreOptions({ devices, accelerator, cpuModel }: RestoreStart): string[] {
  const [model] = cpuModel.split(',');
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
  // Starts paused: vCPUs may have to be added before the firmware enumerates them.
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
 * `elevateprivileges=allow`: with "deny" QEMU could not drop root itself. The jail has already set
 * no_new_privs.
 */
function confinement(start: Start): string[] {
  const user = `${start.uid}:${start.uid}`;
  return [
    ...['-sandbox', 'on,obsolete=deny,elevateprivileges=allow,spawn=deny,resourcecontrol=deny'],
    ...(start.version.runWithUser ? ['-run-with', `user=${user}`] : ['-runas', user]),
  ];
}
