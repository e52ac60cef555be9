// The VM driver on QEMU: each VM is a restored copy of the template in its own network slot and
// jail. Implements the verbs; claims.ts owns slots, running-vms.ts owns processes. Except for open
// control connections, memory holds nothing that the next daemon could not read back.
import { join } from 'node:path';
import { OPEN_EGRESS, type EgressDenied, type EgressPolicy } from '@berth/protocol/egress.ts';
import {
  DriverError,
  SnapshotUnusable,
  type BootVm,
  type ConsoleOutput,
  type CreateVm,
  type DriverState,
  type ExistingVm,
  type RunningVm,
  type SleepVm,
  type VmDriver,
  type VmEnd,
  type VmFigures,
  type VmSize,
  type WakeVm,
  type WokenVm,
} from '../driver.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { flushFolder } from '@berth/os/durable-file.ts';
import { isSame } from '@berth/os/process-identity.ts';
import { VM_FILES } from './machine/argv.ts';
import { Bases } from './template/bases.ts';
import type { Guests } from '../../guest/client.ts';
import { bootAgain } from './start/boot-again.ts';
import { bootDisk } from './start/boot.ts';
import { Claims } from '../../network/claims.ts';
import { VmCgroups } from './process/cgroups.ts';
import { nameEnd } from './process/death.ts';
import { assertOwnOverlay, newMark, writeMark } from './machine/disk.ts';
import { UNLIMITED, type DiskRates } from './process/disk-rates.ts';
import { cpuMsOf, readFigures } from './figures.ts';
import { diskKeyOf, endpointsOf, RunningVms, withContext } from './start/running-vms.ts';
import type { NetworkOptions } from '../../network/dns/network-options.ts';
import { readPlugged, sizeOf } from './machine/plugged.ts';
import { faultInSize } from './machine/resize.ts';
import { prepareVmFolder, restoreTemplate } from './start/restore.ts';
import { resizeWithin } from './start/resize-within.ts';
import { capture, closeFolder } from './snapshot/capture.ts';
import { hasManifest, readManifest } from './snapshot/manifest.ts';
import { Pages } from './snapshot/pages.ts';
import { baseFor, verifySnapshot, wakeSnapshot } from './snapshot/wake.ts';
import { livingProcess, newState, parseState, readDiskGib, stateOf, type VmState } from './start/state.ts';
import { ExitPoller } from './exit-poller.ts';

interface QemuDriverOptions {
  cacheFolder: string;
  /** The image's folder; its template must have been built (template/build/main.ts). */
  imageFolder: string;
  network: NetworkOptions;
  /** Parent of the control groups of VMs; default: none. */
  cgroup?: string | null;
  /** Default: unlimited. */
  rates?: DiskRates;
  guests: Guests;
  /** Logs events; `data` has units in its names. VMs appear under the id of their creation. */
  log: (level: 'info' | 'warn', message: string, data: object) => void;
}

interface QemuDriver extends VmDriver {
  readonly name: 'qemu';
  /** Facts of the host, for the API. Throws until prepared. */
  facts(): { qemuVersion: string; templateId: string; cpuModels: readonly string[] };
}

/** Makes the driver; touches nothing before `prepare`. */
export function createQemuDriver(options: QemuDriverOptions): QemuDriver {
  return new Driver(options);
}

class Driver implements QemuDriver {
  readonly name = 'qemu';
  readonly capabilities = { isolates: true, network: true, hotplug: true, snapshots: true };
  readonly #options: QemuDriverOptions;
  readonly #claims: Claims;
  readonly #cgroups: VmCgroups;
  readonly #vms: RunningVms;
  readonly #pages = new Pages();
  readonly #watch = new ExitPoller();
  #bases: Bases | null = null;

  constructor(options: QemuDriverOptions) {
    this.#options = options;
    const warn = (message: string, data: object): void => options.log('warn', message, data);
    this.#claims = new Claims(options.network, warn);
    this.#cgroups = new VmCgroups(options.cgroup ?? null);
    this.#vms = new RunningVms({ cgroups: this.#cgroups, rates: options.rates ?? UNLIMITED }, options.log);
  }

  get accelerator(): 'kvm' | 'tcg' | 'none' {
    return this.#bases?.current.accelerator ?? 'none';
  }

  facts(): ReturnType<QemuDriver['facts']> {
    const { current, cpuModels } = this.#prepared();
    return { qemuVersion: current.version.text, templateId: current.template.templateId, cpuModels };
  }

  async prepare(): Promise<void> {
    const { cacheFolder, imageFolder, log } = this.#options;
    const bases = await Bases.open(cacheFolder, imageFolder);
    this.#bases = bases;
    const { accelerator, template, version } = bases.current;
    log('info', `virtual machines run under ${accelerator.toUpperCase()}: ${bases.reason}`, {
      accelerator,
      templateId: template.templateId,
      qemuVersion: version.text,
    });
    await this.#cgroups.prepare();
    for (const change of await this.#claims.prepare()) log('info', change, {});

    this.#pages.warm();
  }

  async create(vm: CreateVm): Promise<RunningVm> {
    const { id, folder, spec } = vm;
    const base = this.#prepared().current;
    const fault = faultInSize(spec);
    if (fault !== null) throw new DriverError(fault);

    // Await both, even after a failure: an unrecorded claim could not be released, and a folder
    // being written could not be removed.
    const [prepared, claimed] = await Promise.allSettled([
      prepareVmFolder(folder, base.template.templateId, await diskKeyOf(vm)),
      this.#claims.claim({ ...vm, egress: spec.egress ?? OPEN_EGRESS }, newState(id, base, spec.diskGib)),
    ]);
    if (claimed.status === 'rejected') throw claimed.reason;
    if (prepared.status === 'rejected') throw prepared.reason;

    return this.#vms.start('restoring the template', vm, claimed.value, (order) => restoreTemplate(base, order, spec));
  }

  async recover(folder: string, state: DriverState, egress: EgressPolicy): Promise<RunningVm | null> {
    const parsed = parseState(state);
    if (parsed?.process === undefined || parsed.slot === null || !(await isSame(parsed.process))) return null;

    const { process } = parsed;
    const slot = await this.#claims.adopt(parsed.slot, egress);
    // An interrupted sleep may have left it open.
    await closeFolder(folder);
    await this.#vms.adopt(parsed.vmId, process);
    return { process, ...endpointsOf(slot) };
  }

  async exited(process: ProcessIdentity, signal: AbortSignal): Promise<VmEnd> {
    const control = this.#vms.find(process);
    const { lastAliveUnixMs, oomKill } = await this.#watch.untilGone(process, control?.ended ?? null, signal);
    if (signal.aborted) return { code: 'process_ended', reason: 'no longer watched', lastAliveUnixMs };

    const outOfMemory = await this.#vms.outOfMemory(process, oomKill);
    const seen = (await control?.exitReport()) ?? { guest: null, exit: null };
    return { ...nameEnd({ pid: process.pid, outOfMemory, ...seen }), lastAliveUnixMs };
  }

  async sleep(vm: SleepVm): Promise<DriverState> {
    const state = stateOf(vm.state);
    if (await hasManifest(vm.snapshotFolder)) {
      // The writer may have crashed before the folder was durable.
      await flushFolder(vm.snapshotFolder);
    } else {
      await withContext('capturing the VM', vm.signal, () => this.#capture(vm, state));
    }
    await this.#vms.end(state);
    this.#claims.freeSoon(state);
    await closeFolder(vm.folder);
    const { process: _ended, ...asleep } = state;
    return { ...asleep, slot: null, diskGib: await readDiskGib(vm.folder, state) } satisfies VmState;
  }

  async hasSnapshot(snapshotFolder: string): Promise<boolean> {
    return hasManifest(snapshotFolder);
  }

  async wake(vm: WakeVm): Promise<WokenVm> {
    const state = stateOf(vm.state);
    return withContext('waking the VM', vm.signal, async () => {
      const diskKey = await diskKeyOf(vm);
      const manifest = await readManifest(vm.snapshotFolder, diskKey);
      const snapshot = await verifySnapshot(vm.snapshotFolder, manifest, state.vmId, vm.folder, diskKey);
      await assertOwnOverlay(join(vm.folder, VM_FILES.disk), manifest.templateId, diskKey !== null);
      const bases = this.#prepared();
      const base = baseFor(manifest, bases, await bases.of(manifest.templateId));
      // Not the manifest's size: a compromised QEMU could have reported it and so set its own
      // limit.
      const diskGib = await readDiskGib(vm.folder, state);
      if (manifest.devices.diskGib > diskGib)
        throw new SnapshotUnusable('the disk of the snapshot exceeds its recorded size');

      const slot = await this.#claims.claim(vm, newState(state.vmId, base, diskGib));
      const running = await this.#vms.start('waking the VM', vm, slot, (order) =>
        wakeSnapshot(base, order, snapshot, this.#pages, () => vm.beforeContinue()),
      );
      return { ...running, size: sizeOf(manifest.devices) };
    });
  }

  async boot(vm: BootVm): Promise<WokenVm> {
    const state = stateOf(vm.state);
    return withContext('booting the disk', vm.signal, async () => {
      const disk = join(vm.folder, VM_FILES.disk);
      await assertOwnOverlay(disk, state.templateId, (await diskKeyOf(vm)) !== null);
      const base = await this.#prepared().forBoot(state.templateId);
      // A snapshot of the disk does not fit any longer.
      await writeMark(disk, state.templateId, newMark());
      const asked = newState(state.vmId, base, await readDiskGib(vm.folder, state));
      const running = await bootAgain(
        () =>
          this.#claims.claimFor(vm, asked, (slot) =>
            this.#vms.start('booting the disk', vm, slot, (order) => bootDisk(base, order, this.#options.guests)),
          ),
        (why) => this.#options.log('warn', `booting a disk again: ${why}`, { machineId: state.vmId }),
      );
      const qmp = await this.#vms.controlOf(state.vmId, running.process).session(vm.signal);
      return { ...running, size: sizeOf(await readPlugged(qmp, vm.signal)) };
    });
  }

  async resize(vm: ExistingVm, from: VmSize, to: VmSize): Promise<VmSize> {
    const state = stateOf(vm.state);
    const process = await livingProcess(state);
    return withContext('resizing the VM', vm.signal, async () => {
      const qmp = await this.#vms.controlOf(state.vmId, process).session(vm.signal);
      const { uid } = this.#claims.slotOf(state.slot ?? -1);
      const kvm = (state.virtualization ?? this.#prepared().current).accelerator === 'kvm';
      const vmId = state.vmId;
      const resized = { ...{ vmId, folder: vm.folder, process, uid, kvm, qmp, from, to }, signal: vm.signal };
      return resizeWithin(this.#cgroups, resized);
    });
  }

  async setEgress(state: DriverState, egress: EgressPolicy): Promise<void> {
    const { slot } = stateOf(state);
    if (slot === null) throw new DriverError('the VM has no slot');
    await this.#claims.setEgress(slot, egress);
  }

  egressDenied(state: DriverState): EgressDenied | null {
    return this.#claims.egressDenied(parseState(state)?.slot ?? null);
  }

  async readConsole(_folder: string, state: DriverState, signal: AbortSignal): Promise<ConsoleOutput | null> {
    const process = parseState(state)?.process;
    return (process && (await this.#vms.find(process)?.readConsole(signal))) ?? null;
  }

  async figures(folder: string, state: DriverState): Promise<VmFigures> {
    return readFigures(await livingProcess(stateOf(state)), join(folder, VM_FILES.disk));
  }

  cpuMs(process: ProcessIdentity): number | null {
    return cpuMsOf(process);
  }

  async destroy(_folder: string, state: DriverState | null): Promise<void> {
    // Nothing was claimed, or the claim is unrecorded: `reapOrphans` finds it in the registry.
    const parsed = parseState(state);
    if (parsed !== null) {
      await this.#vms.end(parsed);
      await this.#claims.free(parsed);
    }
  }

  async reapOrphans(known: ReadonlySet<string>): Promise<string[]> {
    return this.#claims.reap(known);
  }

  async close(): Promise<void> {
    this.#vms.close();
    await this.#pages.close();
    await this.#claims.close();
  }

  #prepared(): Bases {
    if (this.#bases === null) throw new DriverError('the QEMU driver was not prepared');
    return this.#bases;
  }

  async #capture(vm: SleepVm, state: VmState): Promise<void> {
    const process = await livingProcess(state);
    if (state.slot === null) throw new DriverError('the VM has no slot');
    const { uid } = this.#claims.slotOf(state.slot);
    const diskKey = await diskKeyOf(vm);
    const base = await this.#prepared().of(state.templateId);
    const control = this.#vms.controlOf(state.vmId, process);
    const { folder, snapshotFolder, signal } = vm;
    const { vmId, machineHash, virtualization = { accelerator: base.accelerator, cpuModel: base.cpuModel } } = state;
    const known = {
      ...{ vmId, process, folder, snapshotFolder, base, machineHash, virtualization, uid, diskKey, signal },
      pages: this.#pages,
    };
    const times = await control.withoutResume(async () => capture({ ...known, qmp: await control.session(signal) }));
    this.#options.log('info', 'VM captured', { machineId: state.vmId, ...times });
  }
}
