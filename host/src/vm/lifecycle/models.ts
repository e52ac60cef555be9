// The model gateway for a running VM: listens from the first use on, and again as soon as the VM
// runs again, so that the requests of an active turn wait for their key instead of failing.
import { MODEL_PROVIDERS, type ModelAccess } from '@berth/protocol/calls/model-access.ts';
import type { ModelPlace } from '../driver.ts';
import { HostError } from '../host-error.ts';
import type { LifecycleParts, ModelGate, OwnedVm, VmModels } from '../owned/owned-vm.ts';

/** Null if the host has no model gateway. */
export function modelsOf(parts: LifecycleParts, vm: OwnedVm, place: ModelPlace): VmModels | null {
  if (parts.models === undefined) return null;
  const models = new ServedModels(parts, parts.models, vm, place);
  if (vm.record.models) {
    void models.serve().catch((error: unknown) => {
      parts.log.warn({ vmId: vm.id, err: error }, 'the model gateway does not listen for a VM');
    });
  }
  return models;
}

class ServedModels implements VmModels {
  readonly #parts: LifecycleParts;
  readonly #gate: ModelGate;
  readonly #vm: OwnedVm;
  readonly #place: ModelPlace;
  #served: Promise<void> | null = null;
  #asOfMs = 0;
  #version: string | null = null;

  constructor(parts: LifecycleParts, gate: ModelGate, vm: OwnedVm, place: ModelPlace) {
    this.#parts = parts;
    this.#gate = gate;
    this.#vm = vm;
    this.#place = place;
  }

  get version(): string | null {
    return this.#version;
  }

  serve(): Promise<void> {
    this.#served ??= this.#gate.serve(this.#vm.id, this.#place.listen).catch((error: unknown) => {
      this.#served = null;
      throw error;
    });
    return this.#served;
  }

  async urlFor(agent: string): Promise<string> {
    if (!Object.hasOwn(MODEL_PROVIDERS, agent))
      throw new HostError('agent_unsupported', `the model gateway does not serve ${agent}`);
    await this.serve();
    return `${this.#place.url}/${MODEL_PROVIDERS[agent as keyof typeof MODEL_PROVIDERS]}`;
  }

  async setAccess(access: ModelAccess): Promise<void> {
    if (access.asOfMs < this.#asOfMs) return;
    this.#asOfMs = access.asOfMs;
    await this.serve();
    await this.#gate.setAccess(this.#vm.id, access);
    this.#version = access.version;
    if (!this.#vm.record.models) await this.#vm.queue.run(() => this.#note());
  }

  close(): void {
    if (this.#served !== null) void this.#gate.forget(this.#vm.id);
  }

  /** Runs in the VM's turn. */
  async #note(): Promise<void> {
    const { record, ending } = this.#vm;
    if (ending !== null || (record.status !== 'running' && record.status !== 'asleep')) return;
    const noted = { ...record, models: true };
    await this.#parts.directory.write(noted);
    this.#vm.record = noted;
  }
}
