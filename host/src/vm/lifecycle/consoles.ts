// Consoles of VMs: read from a VM that runs, kept in its folder when it dies, until it runs again
// or is destroyed. The guest decides what they hold; they are bounded here.
import { CONSOLE_BYTES, type ConsoleText, type VmConsole } from '@berth/protocol/calls/vms.ts';
import { HostError, boundedMessageOf } from '../host-error.ts';
import { DataKeyError } from '../directory/secret-folders.ts';
import { SilentBoot, type ConsoleOutput } from '../driver.ts';
import type { LifecycleParts, OwnedVm } from '../owned/owned-vm.ts';
import type { OwnedVms } from '../owned/owned-vms.ts';

/** Time for QEMU to respond. */
const READ_DEADLINE_MS = 2_000;

export class VmConsoles {
  readonly #parts: LifecycleParts;
  readonly #vms: OwnedVms;

  constructor(parts: LifecycleParts, vms: OwnedVms) {
    this.#parts = parts;
    this.#vms = vms;
  }

  /** Throws `vm_not_found` for an unknown VM. Waits for no verb. */
  async read(id: string, dataKey: string | null): Promise<VmConsole> {
    const vm = this.#vms.find(id);
    if (vm === undefined) throw new HostError('vm_not_found', `this host has no VM ${id}`);

    switch (vm.known().status) {
      case 'running':
      case 'resizing':
        return this.#readLive(vm);
      case 'dead':
        return this.#readKept(vm, dataKey);
      case 'asleep':
        return { console: null, missing: 'asleep' };
      default:
        return { console: null, missing: 'busy' };
    }
  }

  async #readLive(vm: OwnedVm): Promise<VmConsole> {
    try {
      const output = await readFrom(this.#parts, vm);
      return output === null ? { console: null, missing: 'not_kept' } : { console: consoleOf(vm, output) };
    } catch (error) {
      this.#parts.log.warn({ vmId: vm.id, err: error }, 'the console of a VM could not be read');
      return { console: null, missing: 'no_response' };
    }
  }

  async #readKept(vm: OwnedVm, dataKey: string | null): Promise<VmConsole> {
    try {
      const console = await this.#parts.directory.readConsole(vm.id, dataKey);
      return console === null ? { console, missing: 'not_kept' } : { console };
    } catch (error) {
      if (!(error instanceof DataKeyError)) throw error;

      return { console: null, missing: 'sealed' };
    }
  }
}

/**
 * Runs in the turn of a VM that died, before its resources are freed and its data key is forgotten.
 * Never rejects.
 */
export async function keepConsole(parts: LifecycleParts, vm: OwnedVm): Promise<void> {
  try {
    const output = await readFrom(parts, vm);
    if (output !== null) await parts.directory.writeConsole(vm.id, consoleOf(vm, output));
  } catch (error) {
    parts.log.warn({ vmId: vm.id, err: error }, `the console of a dead VM was not kept: ${boundedMessageOf(error)}`);
  }
}

/** Keeps the console of a boot whose guest did not respond. Never rejects. */
export async function keepBootConsole(parts: LifecycleParts, vm: OwnedVm, error: unknown): Promise<void> {
  if (!(error instanceof SilentBoot) || error.console === null) return;
  try {
    await parts.directory.writeConsole(vm.id, { ...bounded(error.console), booted: true });
  } catch (failure) {
    parts.log.warn({ vmId: vm.id, err: failure }, `the console of a boot was not kept: ${boundedMessageOf(failure)}`);
  }
}

async function readFrom({ driver, directory }: LifecycleParts, vm: OwnedVm): Promise<ConsoleOutput | null> {
  const signal = AbortSignal.timeout(READ_DEADLINE_MS);
  return driver.readConsole(directory.driverFolder(vm.id), vm.record.driverState ?? {}, signal);
}

function consoleOf(vm: OwnedVm, output: ConsoleOutput): ConsoleText {
  return { ...bounded(output), booted: vm.record.woke?.from === 'disk' };
}

/** A record of a longer text would not be read. */
function bounded({ text, truncated }: ConsoleOutput): ConsoleOutput {
  return { text: text.slice(-CONSOLE_BYTES), truncated: truncated || text.length > CONSOLE_BYTES };
}
