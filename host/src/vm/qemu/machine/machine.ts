// The virtual machine all VMs and the template share: what decides whether device state loads, and
// its hash. Pure; knows no paths and no VM.
import { createHash } from 'node:crypto';
import { GUEST_NETWORK } from '@berth/protocol/guest.ts';
import { MEMORY_MAX_MIB, MEMORY_SLOTS, TEMPLATE_SIZE, VCPU_MAX } from '../../machine-size.ts';

export type Accelerator = 'kvm' | 'tcg';

/**
 * The translation buffer of TCG, in MiB: all of it that is used counts as unshared memory. Up to
 * the first answers a restored guest needs 35, and one that was warmed up for the pool some 45; a
 * full buffer is emptied and everything translated again (see docs/decisions/warm-pool.md).
 */
export function translationBufferMib(use: 'boot' | { vcpu: number }): number {
  return use === 'boot' ? 256 : 64 + 8 * (use.vcpu - 1);
}

/**
 * A versioned type: a newer QEMU keeps the machine that an older one saved. The last options take
 * away what a restored guest would never use.
 */
const MACHINE_TYPE =
  'pc-q35-8.2,hpet=off,vmport=off,smbus=off,sata=off,i8042=off,usb=off,graphics=off,suppress-vmdesc=on,dump-guest-core=off,memory-backend=mem';

/** PCI addresses are given so that the order of options can never move a device. */
const DEVICES = [
  'vmgenid,guid=auto',
  'virtio-blk-pci,id=disk0,drive=disk,romfile=,addr=0x2',
  // Without announcements: a restored guest has the address it always had, and nobody to tell.
  `virtio-net-pci,id=nic0,netdev=net0,mac=${GUEST_NETWORK.mac},guest_announce=off,romfile=,addr=0x3`,
  'virtio-rng-pci,id=rng0,rng=entropy,romfile=,addr=0x4',
  'virtio-serial-pci,id=serial0,romfile=,addr=0x5',
  'virtconsole,chardev=console',
] as const;

/**
 * What the guest's processor can do. Under TCG: everything it emulates, without five-level page
 * tables (each miss of the emulated TLB walks one level more). Under KVM: a named model, so that a
 * snapshot of one host wakes on another of the same maker.
 */
export function cpuModel(accelerator: Accelerator, hostVendor: string): string {
  if (accelerator === 'tcg') return 'max,la57=off';

  return hostVendor === 'AuthenticAMD' ? 'EPYC-v2' : 'Haswell-v4';
}

/** Kernel command line of the template's boot. Restored machines never boot: it is in their RAM. */
export function kernelCommandLine(accelerator: Accelerator): string {
  const always = [
    'console=hvc0',
    'quiet',
    'net.ifnames=0',
    // A panic ends QEMU (-no-reboot), so that the host sees it.
    'panic=-1',
    'random.trust_cpu=on',
    // A small machine: huge pages make more of the template's RAM unshared at the first write to
    // it.
    'transparent_hugepage=madvise',
    // Memory of a fresh machine comes from a file of zeroes; wiping each page again only makes it
    // unshared.
    'init_on_alloc=0',
    'nowatchdog',
    'audit=0',
    // Hot-plugged memory carries its own page descriptors, and all of it can be taken away again up
    // to this share (per cent) of the memory the machine booted with, which serves the kernel: 16
    // GiB. What is beyond that serves the kernel as well.
    'memory_hotplug.memmap_on_memory=1',
    'memory_hotplug.online_policy=auto-movable',
    'memory_hotplug.auto_movable_ratio=1600',
  ];
  // Emulated code does not speculate in the way the mitigations defend against: the host's own
  // processor runs QEMU's translation of it.
  const emulated = ['mitigations=off', 'no5lvl', 'clocksource=tsc', 'tsc=reliable'];
  return [...always, ...(accelerator === 'tcg' ? emulated : [])].join(' ');
}

/**
 * Whether the template must boot with every vCPU it may ever have, and lose all but one again:
 * Linux (6.12.117, and others since late 2025) takes places for CPUs to be plugged in only from a
 * hypervisor it knows, and TCG is none. CPUs it has seen once may come back.
 */
export function bootsWithAllCpus(accelerator: Accelerator): boolean {
  return accelerator === 'tcg';
}

/**
 * How the machine is run; may differ between the template's boot and a restore. A thread for each
 * vCPU, also for one: it costs nothing measurable, and from a thread that serves all of them none
 * can be taken away (QEMU aborts: the thread would wait for its own end).
 */
export function acceleratorOptions(accelerator: Accelerator, use: 'boot' | { vcpu: number }): string[] {
  return ['-accel', accelerator === 'kvm' ? 'kvm' : `tcg,thread=multi,tb-size=${translationBufferMib(use)}`];
}

/** Options that are the same at every start, template or restore. */
export function machineOptions(accelerator: Accelerator, hostVendor: string): string[] {
  return [
    ...['-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot'],
    ...['-cpu', cpuModel(accelerator, hostVendor), '-M', MACHINE_TYPE],
    ...['-smp', `${TEMPLATE_SIZE.vcpu},sockets=1,cores=${VCPU_MAX},threads=1,maxcpus=${VCPU_MAX}`],
    ...['-m', `${TEMPLATE_SIZE.memoryMib}M,slots=${MEMORY_SLOTS},maxmem=${MEMORY_MAX_MIB}M`],
    ...['-object', 'rng-builtin,id=entropy'],
    ...DEVICES.flatMap((device) => ['-device', device]),
  ];
}

/** Changes whenever a template made before could not be restored after, or would be another one. */
export function machineHash(accelerator: Accelerator, hostVendor: string): string {
  const facts = [machineOptions(accelerator, hostVendor), kernelCommandLine(accelerator), TEMPLATE_SIZE];
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex');
}
