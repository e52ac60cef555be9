// The VM driver on QEMU: each VM is a restored copy of the template in a network slot and a jail of its own. Owns which slot and process a VM has, from
// the claim to the end; keeps nothing in memory that the next daemon could not read back, except open control connections.
import { basename, join } from 'node:path';
import { openImage } from '@berth/image/image-folder.ts';
import { GUEST_PORT } from '@berth/protocol/guest.ts';
import { z } from 'zod';
import { DriverError, type CreateVm, type DriverState, type RunningVm, type VmDriver, type VmProcess } from '../driver.ts';
import { endProcess, isSame, processExited } from '../process.ts';
import { readProbeFor } from './accelerator.ts';
import { VM_FILES } from './argv.ts';
import { Control } from './control.ts';
import { readHostMachine } from './host-machine.ts';
import { faultInSize } from './hotplug.ts';
import { createNetwork } from './network/network.ts';
import type { NetworkOptions } from './network/network-options.ts';
import { DEFAULT_REGISTRY_FOLDER, readRegistry } from './network/registry.ts';
import { parseGuestCidr, slotOf, type Network, type Slot } from './network/slot.ts';
import { openQmp } from './qmp.ts';
import { readQemuVersion } from './qemu-version.ts';
import { prepareVmFolder, restore, type RestoreBase } from './restore.ts';
import { endSlotProcesses } from './slot-processes.ts';
import { openTemplate, templateFacts, templateIdOf } from './template.ts';

/** How long the control socket of an adopted QEMU may take to answer: it is busy with nothing else. */
const ADOPT_DEADLINE_MS = 5_000;

export interface QemuDriverOptions {
  cacheFolder: string;
  /** The image's folder; the template for it must have been built (template-main.ts). */
  imageFolder: string;
  network: NetworkOptions;
  /** Told what happens; `data` has units in its names. */
  log: (level: 'info' | 'warn', message: string, data: object) => void;
}

export interface QemuDriver extends VmDriver {
  readonly name: 'qemu';
  /** Known once prepared; null before. */
  readonly qemuVersion: string | null;
  readonly templateId: string | null;
}

/** What the driver keeps of a VM on disk: the slot before anything runs in it, the process as soon as there is one. */
const driverState = z.object({
  vmId: z.string(),
  slot: z.int().min(0),
  process: z.object({ pid: z.int(), startTicks: z.string(), bootId: z.string() }).optional(),
});

/** Makes the driver; nothing is touched before `prepare`. */
export function createQemuDriver(options: QemuDriverOptions): QemuDriver {
  return new Driver(options);
}

class Driver implements QemuDriver {
  readonly name = 'qemu';
  readonly capabilities = { isolates: true, network: true, hotplug: true };
  readonly #options: QemuDriverOptions;
  readonly #network: Network;
  readonly #controls = new Map<string, Control>();
  #base: RestoreBase | null = null;

  constructor(options: QemuDriverOptions) {
    this.#options = options;
    this.#network = createNetwork(options.network);
  }

  get accelerator(): 'kvm' | 'tcg' | 'none' {
    return this.#base?.accelerator ?? 'none';
  }

  get qemuVersion(): string | null {
    return this.#base?.version.text ?? null;
  }

  get templateId(): string | null {
    return this.#base?.template.templateId ?? null;
  }

  async prepare(): Promise<void> {
    const { cacheFolder, imageFolder, log } = this.#options;
    const [version, host, image] = await Promise.all([
      readQemuVersion(),
      readHostMachine(),
      openImage(imageFolder, { verify: 'remembered' }),
    ]);
    const probe = await readProbeFor(cacheFolder, version, host);
    if (probe === null) {
      throw new DriverError(
        `the accelerator was not probed yet for QEMU ${version.text} on this kernel and processor: run the set-up (berth up)`,
      );
    }
    const { accelerator, reason } = probe;
    const templateId = templateIdOf(templateFacts(image.imageId, version, accelerator, host));
    const template = await openTemplate(cacheFolder, templateId);
    if (template === null) {
      throw new DriverError(`there is no template ${templateId} of image ${image.imageId} in ${cacheFolder}: run the set-up (berth up)`);
    }
    const rootDisk = basename(image.rootPath);
    this.#base = { template, imageFolder, rootDisk, accelerator, version, hostVendor: host.cpuVendor };
    log('info', `virtual machines run under ${accelerator.toUpperCase()}: ${reason}`, {
      accelerator,
      templateId,
      qemuVersion: version.text,
    });
    for (const change of await this.#network.prepare()) {
      log('info', change, {});
    }
  }

  async create(vm: CreateVm): Promise<RunningVm> {
    const { id, folder, spec, signal } = vm;
    const base = this.#base;
    if (base === null) {
      throw new DriverError('the QEMU driver was not prepared');
    }
    const fault = faultInSize(spec);
    if (fault !== null) {
      throw new DriverError(fault);
    }
    // Both are waited for whatever becomes of the other: a claim that is not recorded could not be given back, and a folder that is still being
    // written could not be removed.
    const [prepared, claimed] = await Promise.allSettled([prepareVmFolder(folder), this.#claim(vm)]);
    if (claimed.status === 'rejected') {
      throw claimed.reason;
    }
    if (prepared.status === 'rejected') {
      throw prepared.reason;
    }
    const slot = claimed.value;
    const control = this.#control(id);
    const restored = await restore(base, {
      vmId: id,
      folder,
      spec,
      slot,
      signal,
      onStarted: (process) => vm.saveState({ vmId: id, slot: slot.number, process }),
      onEvent: (event) => control.note(event),
    }).catch((error: unknown) => {
      throw signal.aborted || error instanceof DriverError
        ? error
        : new DriverError(`restoring the template: ${messageOf(error)}`, { cause: error });
    });
    const { process, qmp, ended, times } = restored;
    control.keep(qmp, ended);
    this.#controls.set(keyOf(process), control);
    this.#options.log('info', 'the template is restored', { vmId: id, slot: slot.number, pid: process.pid, ...times });
    return { process, guest: endpointOf(slot) };
  }

  async recover(folder: string, state: DriverState): Promise<RunningVm | null> {
    const parsed = driverState.safeParse(state);
    if (!parsed.success || parsed.data.process === undefined || !(await isSame(parsed.data.process))) {
      return null;
    }
    const { process } = parsed.data;
    const slot = await this.#network.adopt(parsed.data.slot);
    const control = this.#control(parsed.data.vmId);
    try {
      const call = { signal: AbortSignal.timeout(ADOPT_DEADLINE_MS), deadlineMs: ADOPT_DEADLINE_MS };
      const qmp = await openQmp(join(folder, VM_FILES.control), (event) => control.note(event), call);
      control.keep(qmp, null);
      this.#controls.set(keyOf(process), control);
      await control.resume(call);
    } catch (error) {
      // It is the recorded process and it runs; without its control socket the guest works all the same, and it can be ended.
      this.#options.log('warn', 'the control socket of an adopted QEMU does not answer', { pid: process.pid, error: messageOf(error) });
    }
    return { process, guest: endpointOf(slot) };
  }

  async exited(process: VmProcess, signal: AbortSignal): Promise<string> {
    await processExited(process, signal);
    if (signal.aborted) {
      return 'no longer watched';
    }
    return this.#controls.get(keyOf(process))?.reason() ?? `the QEMU process ${process.pid} has ended`;
  }

  async destroy(_folder: string, state: DriverState | null): Promise<void> {
    const parsed = driverState.safeParse(state);
    if (!parsed.success) {
      // Nothing was claimed, or the claim was not recorded yet: `reapOrphans` finds it by the registry.
      return;
    }
    const { process } = parsed.data;
    if (process !== undefined) {
      this.#drop(process);
      await endProcess(process);
    }
    const slot = this.#slotOf(parsed.data.slot);
    // A slot that was released may be another VM's by now.
    if ((await this.#registry()).get(slot.number)?.vmId === parsed.data.vmId) {
      await endSlotProcesses(slot);
      await this.#network.release(slot.number);
    }
  }

  async reapOrphans(known: ReadonlySet<string>): Promise<string[]> {
    const kept = new Set<number>();
    const reaped: string[] = [];
    for (const [number, { vmId }] of await this.#registry()) {
      if (vmId !== null && known.has(vmId)) {
        kept.add(number);
        continue;
      }
      const ended = vmId === null ? 0 : await endSlotProcesses(this.#slotOf(number));
      if (ended > 0) {
        reaped.push(`${ended} processes of ${vmId} in network slot ${number}`);
      }
    }
    return [...reaped, ...(await this.#network.reap(kept))];
  }

  async close(): Promise<void> {
    for (const control of this.#controls.values()) {
      control.close();
    }
    this.#controls.clear();
    await this.#network.close();
  }

  /** The claim is in the record, durably, when this resolves; a claim that could not be recorded is given back. */
  async #claim(vm: CreateVm): Promise<Slot> {
    const slot = await this.#network.claim(vm.id, vm.signal);
    try {
      await vm.saveState({ vmId: vm.id, slot: slot.number });
      return slot;
    } catch (error) {
      await this.#network.release(slot.number);
      throw error;
    }
  }

  #control(vmId: string): Control {
    return new Control((message, data) => this.#options.log('warn', message, { vmId, ...data }));
  }

  #drop(process: VmProcess): void {
    this.#controls.get(keyOf(process))?.close();
    this.#controls.delete(keyOf(process));
  }

  #slotOf(number: number): Slot {
    return slotOf(parseGuestCidr(this.#options.network.cidr), number);
  }

  #registry() {
    const { registryFolder, instanceId } = this.#options.network;
    return readRegistry(registryFolder ?? DEFAULT_REGISTRY_FOLDER, instanceId);
  }
}

function endpointOf(slot: Slot): RunningVm['guest'] {
  return { address: slot.address, port: GUEST_PORT };
}

function keyOf({ pid, startTicks }: VmProcess): string {
  return `${pid}:${startTicks}`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
