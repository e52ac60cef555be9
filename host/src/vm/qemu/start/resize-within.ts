// Resizes a VM and the limits of its QEMU: they grow before the VM does, and shrink after it.
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import type { VmSize } from '../../driver.ts';
import type { QmpSession } from '../machine/qmp.ts';
import { resizeQemu } from '../machine/resize.ts';
import type { VmCgroups } from '../process/cgroups.ts';
import { allowSize, type LimitedSize } from '../process/limits.ts';
import { writeDiskGib } from './state.ts';

interface ResizedVm {
  vmId: string;
  folder: string;
  process: ProcessIdentity;
  /** User of its QEMU. */
  uid: number;
  kvm: boolean;
  qmp: QmpSession;
  from: VmSize;
  to: VmSize;
  signal: AbortSignal;
}

/** Resolves and rejects as {@link resizeQemu}. */
export async function resizeWithin(cgroups: VmCgroups, vm: ResizedVm): Promise<VmSize> {
  const { vmId, from, to, kvm, qmp, signal } = vm;
  const allow = (size: Omit<LimitedSize, 'kvm'>): Promise<void> =>
    allowSize(vm.process, vm.uid, { ...size, kvm }, signal);
  const allowDisk = (diskGib: number): Promise<void> => writeDiskGib(vm.folder, diskGib).then(() => allow({ diskGib }));

  const both = { vcpu: Math.max(from.vcpu, to.vcpu), memoryMib: Math.max(from.memoryMib, to.memoryMib) };
  if (to.memoryMib > from.memoryMib) await allow({ memoryMib: to.memoryMib });
  await cgroups.resize(vmId, both, kvm);
  const size = await resizeQemu({ qmp, to, allowDisk, signal });
  if (size.memoryMib < from.memoryMib) await allow({ memoryMib: size.memoryMib });
  await cgroups.resize(vmId, size, kvm);
  return size;
}
