// The virtual hardware shared by all VMs and the template, which decides whether device state
// loads, and its hash. Pure; knows no paths and no VM.
import { createHash } from 'node:crypto';
import { GUEST_NETWORK } from '@berth/protocol/guest.ts';
import { MEMORY_MAX_MIB, MEMORY_SLOTS, TEMPLATE_SIZE, VCPU_MAX } from '../../machine-size.ts';

export type Accelerator = 'kvm' | 'tcg';

/** Accelerator and processor model of a VM. */
export interface Virtualization {
  accelerator: Accelerator;
  /** Model of QEMU, see cpu-models.ts. */
  cpuModel: string;
}

/**
 * TCG translation buffer in MiB. Used parts count as unshared memory. A restored guest needs 35 MiB
 * until its first responses, a warmed-up pool VM about 45, a guest with a coding agent over 200. A
 * full buffer is flushed and everything is translated again (docs/decisions/warm-pool.md).
 */
function translationBufferMib(use: 'boot' | { vcpu: number }): number {
  return use === 'boot' ? 256 : 448 + 8 * (use.vcpu - 1);
}

/**
 * A versioned type: a newer QEMU keeps the hardware that an older one saved. The last options
 * remove devices that a restored guest never uses.
 */
const MACHINE_TYPE =
  'pc-q35-8.2,hpet=off,vmport=off,smbus=off,sata=off,i8042=off,usb=off,graphics=off,suppress-vmdesc=on,dump-guest-core=off,memory-backend=mem';

/** QOM path of the disk's device behind its PCI proxy. */
export const DISK_BACKEND = '/machine/peripheral/disk0/virtio-backend';

/** Explicit PCI addresses: the order of options never moves a device. */
const DEVICES = [
  'vmgenid,guid=auto',
  'virtio-blk-pci,id=disk0,drive=disk,romfile=,addr=0x2',
  // No announcements: a restored guest keeps its address, and has no neighbours.
  `virtio-net-pci,id=nic0,netdev=net0,mac=${GUEST_NETWORK.mac},guest_announce=off,romfile=,addr=0x3`,
  'virtio-rng-pci,id=rng0,rng=entropy,romfile=,addr=0x4',
  'virtio-serial-pci,id=serial0,romfile=,addr=0x5',
  'virtconsole,chardev=console',
] as const;

/** Kernel command line of the template's boot. Restored VMs keep it in RAM. */
export function kernelCommandLine(accelerator: Accelerator): string {
  const always = [
    'console=hvc0',
    'quiet',
    'net.ifnames=0',
    // A panic ends QEMU (-no-reboot), which the host notices.
    'panic=-1',
    'random.trust_cpu=on',
    // Small VMs: huge pages would unshare more of the template's RAM on the first write.
    'transparent_hugepage=madvise',
    // A new VM's memory reads as zeros from a file; clearing pages again would only unshare them.
    'init_on_alloc=0',
    'nowatchdog',
    'audit=0',
    // Hot-plugged memory holds its own page descriptors. All of it stays removable up to this
    // percentage of the boot memory, 16 GiB; the rest serves the kernel too.
    'memory_hotplug.memmap_on_memory=1',
    'memory_hotplug.online_policy=auto-movable',
    'memory_hotplug.auto_movable_ratio=1600',
  ];
  // Emulated code does not speculate as the mitigations assume; the host's processor runs QEMU's
  // translation.
  const emulated = ['mitigations=off', 'no5lvl', 'clocksource=tsc', 'tsc=reliable'];
  return [...always, ...(accelerator === 'tcg' ? emulated : [])].join(' ');
}

/**
 * True if the template boots with all possible vCPUs and then removes all but one. Linux (6.12.117,
 * and others since late 2025) accepts new CPU places only from a hypervisor it knows, which TCG is
 * not. CPUs seen before may return.
 */
export function bootsWithAllCpus(accelerator: Accelerator): boolean {
  return accelerator === 'tcg';
}

/**
 * Accelerator options; may differ between the template's boot and a restore. Each vCPU has a
 * thread, even a single one: the cost is not measurable, and QEMU aborts when a vCPU is removed
 * from a shared thread.
 */
export function acceleratorOptions(accelerator: Accelerator, use: 'boot' | { vcpu: number }): string[] {
  return ['-accel', accelerator === 'kvm' ? 'kvm' : `tcg,thread=multi,tb-size=${translationBufferMib(use)}`];
}

/** Options common to every start, of template or VM. */
export function machineOptions(cpu: string): string[] {
  return [
    ...['-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot'],
    ...['-cpu', cpu, '-M', MACHINE_TYPE],
    ...['-smp', `${TEMPLATE_SIZE.vcpu},sockets=1,cores=${VCPU_MAX},threads=1,maxcpus=${VCPU_MAX}`],
    ...['-m', `${TEMPLATE_SIZE.memoryMib}M,slots=${MEMORY_SLOTS},maxmem=${MEMORY_MAX_MIB}M`],
    ...['-object', 'rng-builtin,id=entropy'],
    ...DEVICES.flatMap((device) => ['-device', device]),
  ];
}

/** Changes whenever an older template could no longer be restored or would differ. */
export function machineHash({ accelerator, cpuModel }: Virtualization): string {
  const facts = [machineOptions(cpuModel), kernelCommandLine(accelerator), TEMPLATE_SIZE];
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex');
}
